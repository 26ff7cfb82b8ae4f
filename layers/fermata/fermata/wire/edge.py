"""From a request to an answer: the route, the caller, the verb, and the headers every answer carries.

The order is the contract's: unknown path 404 · wrong method 405 · what a route checks first · origin · caller ·
capability · the verb, which reads the body. A preflight is answered here: an origin is let in when any tenant
lists it, because a preflight does not say whose it is; the request itself is read only by its own tenant's origins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from fermata.aws import signals
from fermata.aws.desk import Desk, open_desk
from fermata.wire.callers import identify, require
from fermata.wire.errors import phrase
from fermata.wire.http import Answer, Request, of_event, read_body, to_event
from fermata.wire.tenant import Tenant, normal_origin
from fermata.wire.tenants import origin_is_known, tenant_of
from fermata.words.caller import Caller
from fermata.words.errors import Forbidden, NotFound

METHODS = ("GET", "POST", "PUT", "DELETE")
ALLOWED_HEADERS = "accept, authorization, content-type, fermata-tool-names, idempotency-key, x-request-id"
EXPOSED_HEADERS = "retry-after, x-request-id"
PREFLIGHT_SECONDS = "600"
MANNERS = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Result = TypeVar("Result")
Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True)
class Route:
    """`needs` are capabilities of which the caller has at least one; `first` runs before anybody asks who it is."""

    method: str
    path: str
    verb: "Callable[[Visit], Answer]"
    needs: tuple[str, ...]
    first: Callable[[Request], None] | None = None


@dataclass(frozen=True)
class PublicRoute:
    """For anybody, without a token."""

    method: str
    path: str
    verb: Callable[[Desk], Answer]


@dataclass(frozen=True)
class Visit:
    """One request of a caller who may make it."""

    desk: Desk
    request: Request
    caller: Caller
    tenant: Tenant
    route: Route

    def body(self, model: type[Body]) -> Body:
        """The request's body. Instatic's own server passes over what it does not know, so its browsers may say more."""
        return read_body(self.request, model, tolerant=self.tenant.dialect == "instatic")


Routes = Sequence[Route | PublicRoute]
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def door(routes: Routes) -> Handler:
    """The Lambda handler of these routes."""

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return to_event(serve(open_desk(), routes, of_event(event)))

    return signals.traced(handler)


def serve(desk: Desk, routes: Routes, request: Request) -> Answer:
    """Always an answer, whatever goes wrong on the way."""
    signals.afresh(request_id=request.id)
    visit = _phrased(request, lambda: admit(desk, routes, request))
    if isinstance(visit, Answer):
        return dressed(request, visit, readable=_is_known_origin(desk, request))
    answer = _phrased(request, lambda: visit.route.verb(visit))
    return dressed(request, answer, readable=normal_origin(request.origin) in visit.tenant.origins)


def admit(desk: Desk, routes: Routes, request: Request) -> Visit | Answer:
    """The visit, or an answer where none is needed. Raises the refusal otherwise."""
    found = _on_path(routes, request.path)
    methods = [route.method for route, _ in found]
    if request.method == "OPTIONS":
        return _preflight(desk, request, methods or list(METHODS))
    if not found:
        raise NotFound("Not found")
    if request.method not in methods:
        return Answer(405, {"error": "Method not allowed"}, {"Allow": ", ".join([*methods, "OPTIONS"])})
    route, params = found[methods.index(request.method)]
    if isinstance(route, PublicRoute):
        return route.verb(desk)
    return _visit(desk, route, replace(request, params=params))


def dressed(request: Request, answer: Answer, *, readable: bool) -> Answer:
    """With the headers every answer has; `readable` lets the page that asked read it."""
    headers = {**MANNERS, "X-Request-Id": request.id, "Vary": "Origin", **answer.headers}
    if answer.is_empty:
        del headers["Content-Type"]
    if readable:
        headers |= {"Access-Control-Allow-Origin": request.origin, "Access-Control-Allow-Credentials": "true"}
        headers.setdefault("Access-Control-Expose-Headers", EXPOSED_HEADERS)
    return replace(answer, headers=headers)


def _visit(desk: Desk, route: Route, request: Request) -> Visit:
    if route.first:
        route.first(request)
    caller = identify(desk, request.headers, request.method)
    signals.keyed(tenant=caller.tenant, user=caller.user)
    require(caller, *route.needs)
    return Visit(desk, request, caller, tenant_of(desk, caller.tenant), route)


def _is_known_origin(desk: Desk, request: Request) -> bool:
    """Before the caller is known, a page may read our answer when it is some tenant's; no harm if we cannot tell."""
    return bool(request.origin) and _phrased(request, lambda: origin_is_known(desk, request.origin)) is True


def _preflight(desk: Desk, request: Request, methods: list[str]) -> Answer:
    allowed = ", ".join([*methods, "OPTIONS"])
    if not request.origin:
        return Answer(204, headers={"Allow": allowed})
    if not origin_is_known(desk, request.origin):
        raise Forbidden("Forbidden: invalid origin")
    headers = {
        "Allow": allowed,
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }
    return Answer(204, headers=headers)


def _phrased(request: Request, act: Callable[[], Result]) -> Result | Answer:
    try:
        return act()
    except Exception as error:  # noqa: BLE001 (the edge of the service: whatever it is, the caller gets an answer)
        return phrase(error, request.id)


def _on_path(routes: Routes, path: str) -> list[tuple[Route | PublicRoute, Mapping[str, str]]]:
    found = [(route, _params(route.path, path)) for route in routes]
    return [(route, params) for route, params in found if params is not None]


def _params(template: str, path: str) -> dict[str, str] | None:
    """The values of `{name}` steps when the path has the template's form; an empty step has no value."""
    wanted, given = template.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    pairs = list(zip(wanted, given, strict=True))
    if not all(step == want or (want.startswith("{") and step) for want, step in pairs):
        return None
    return {want[1:-1]: step for want, step in pairs if want.startswith("{")}
