"""From a request to an answer: the route, the caller, the verb, and the headers every answer carries.

The order is the contract's: unknown path 404 · wrong method 405 · what a route checks first · origin · caller ·
capability · the verb, which reads the body. A preflight is answered here: an origin is let in when any tenant
lists it, because a preflight does not say whose it is; the request itself is read only by its own tenant's origins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from fermata.aws import observability
from fermata.aws.resources import Resources, get_resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Forbidden, NotFound
from fermata.wire.auth.authentication import authenticate, require_capability
from fermata.wire.auth.tenant import Tenant, normalize_origin
from fermata.wire.auth.tenant_store import get_tenant, is_registered_origin
from fermata.wire.http.error_responses import response_from_error
from fermata.wire.http.messages import HttpRequest, Response, parse_body, request_from_event, to_proxy_response

_METHODS = ("GET", "POST", "PUT", "DELETE")
_ALLOWED_HEADERS = "accept, authorization, content-type, fermata-tool-names, idempotency-key, x-request-id"
_EXPOSED_HEADERS = "retry-after, x-request-id"
_PREFLIGHT_SECONDS = "600"
_STANDARD_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}

_Result = TypeVar("_Result")
_Body = TypeVar("_Body", bound=BaseModel)


@dataclass(frozen=True)
class Route:
    """`needs` are capabilities of which the caller has at least one; `first` runs before anybody asks who it is."""

    method: str
    path: str
    handler: "Callable[[RequestContext], Response]"
    capabilities: tuple[str, ...]
    precondition: Callable[[HttpRequest], None] | None = None


@dataclass(frozen=True)
class PublicRoute:
    """For anybody, without a token."""

    method: str
    path: str
    handler: Callable[[Resources], Response]


@dataclass(frozen=True)
class RequestContext:
    """One request of a caller who may make it."""

    resources: Resources
    request: HttpRequest
    caller: Caller
    tenant: Tenant
    route: Route

    def parse_body(self, model: type[_Body]) -> _Body:
        """The request's body. Instatic's own server passes over what it does not know, so its browsers may say more."""
        return parse_body(self.request, model, ignore_unknown=self.tenant.dialect == "instatic")


Routes = Sequence[Route | PublicRoute]
ProxyHandler = Callable[[dict[str, Any], Any], dict[str, Any]]


def make_handler(routes: Routes) -> ProxyHandler:
    """The Lambda handler of these routes."""

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return to_proxy_response(handle_request(get_resources(), routes, request_from_event(event)))

    return observability.trace_handler(handler)


def handle_request(resources: Resources, routes: Routes, request: HttpRequest) -> Response:
    """Always an answer, whatever goes wrong on the way."""
    observability.reset_log_keys(request_id=request.id)
    visit = _phrased(request, lambda: admit_request(resources, routes, request))
    if isinstance(visit, Response):
        return add_response_headers(request, visit, is_readable=_is_known_origin(resources, request))
    answer = _phrased(request, lambda: visit.route.handler(visit))
    return add_response_headers(request, answer, is_readable=normalize_origin(request.origin) in visit.tenant.origins)


def admit_request(resources: Resources, routes: Routes, request: HttpRequest) -> RequestContext | Response:
    """The visit, or an answer where none is needed. Raises the refusal otherwise."""
    found = _on_path(routes, request.path)
    methods = [route.method for route, _ in found]
    if request.method == "OPTIONS":
        return _preflight(resources, request, methods or list(_METHODS))
    if not found:
        raise NotFound("Not found")
    if request.method not in methods:
        return Response(405, {"error": "Method not allowed"}, {"Allow": ", ".join([*methods, "OPTIONS"])})
    route, params = found[methods.index(request.method)]
    if isinstance(route, PublicRoute):
        return route.handler(resources)
    return _visit(resources, route, replace(request, path_parameters=params))


def add_response_headers(request: HttpRequest, response: Response, *, is_readable: bool) -> Response:
    """With the headers every answer has; `readable` lets the page that asked read it."""
    headers = {**_STANDARD_HEADERS, "X-Request-Id": request.id, "Vary": "Origin", **response.headers}
    if response.is_empty:
        del headers["Content-Type"]
    if is_readable:
        headers |= {"Access-Control-Allow-Origin": request.origin, "Access-Control-Allow-Credentials": "true"}
        headers.setdefault("Access-Control-Expose-Headers", _EXPOSED_HEADERS)
    return replace(response, headers=headers)


def _visit(resources: Resources, route: Route, request: HttpRequest) -> RequestContext:
    if route.precondition:
        route.precondition(request)
    caller = authenticate(resources, request.headers, request.method)
    observability.add_log_keys(tenant=caller.tenant, user=caller.user)
    require_capability(caller, *route.capabilities)
    return RequestContext(resources, request, caller, get_tenant(resources, caller.tenant), route)


def _is_known_origin(resources: Resources, request: HttpRequest) -> bool:
    """Before the caller is known, a page may read our answer when it is some tenant's; no harm if we cannot tell."""
    return bool(request.origin) and _phrased(request, lambda: is_registered_origin(resources, request.origin)) is True


def _preflight(resources: Resources, request: HttpRequest, methods: list[str]) -> Response:
    allowed = ", ".join([*methods, "OPTIONS"])
    if not request.origin:
        return Response(204, headers={"Allow": allowed})
    if not is_registered_origin(resources, request.origin):
        raise Forbidden("Forbidden: invalid origin")
    headers = {
        "Allow": allowed,
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
    }
    return Response(204, headers=headers)


def _phrased(request: HttpRequest, act: Callable[[], _Result]) -> _Result | Response:
    try:
        return act()
    except Exception as error:  # noqa: BLE001 (the edge of the service: whatever it is, the caller gets an answer)
        return response_from_error(error, request.id)


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
