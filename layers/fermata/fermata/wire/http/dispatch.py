"""Dispatch requests: find the route, authenticate the caller, call the handler, add headers (CORS) to each response.

The order of the checks is part of the API: unknown path (404), wrong method (405), the route's precondition, origin,
caller, capability, and then the handler, which parses the body (decision 0020).

A preflight request does not say whose page sends it. So its origin is allowed when any tenant lists it. The response
to the request itself can only be read by the origins of the caller's tenant; those of forms by all, because whoever
may send one is to know what became of it (decision 0624).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from fermata.aws import observability
from fermata.aws.resources import Resources, get_resources
from fermata.aws.security_events import begin_request_of_source
from fermata.domain.errors import Forbidden, OriginRefused, PathNotFound
from fermata.wire.auth.authenticate_api_key import record_api_key_use
from fermata.wire.auth.authentication import authenticate, require_capability
from fermata.wire.auth.tenant import normalize_origin
from fermata.wire.auth.tenant_store import get_tenant, is_registered_origin
from fermata.wire.http.api_gateway import request_from_event, to_proxy_response
from fermata.wire.http.check_parameters import check_parameters
from fermata.wire.http.cms_agent_envelope import shape_cms_agent_error
from fermata.wire.http.error_responses import response_from_error
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.http.openai_errors import shape_openai_error
from fermata.wire.http.rate_limit_headers import RATE_LIMIT_HEADERS
from fermata.wire.http.routing import PublicRoute, RequestContext, Route, Router, Routes, find_methods, find_routes

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ALLOWED_HEADERS = (
    "accept, authorization, content-type, fermata-tool-names, fermata-when-busy, idempotency-key, if-match, "
    "if-none-match, x-request-id"
)
_EXPOSED_HEADERS = ", ".join(["etag", *map(str.lower, RATE_LIMIT_HEADERS), "retry-after", "x-request-id"])
_PREFLIGHT_SECONDS = "600"
_STANDARD_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}

_FUNCTIONS_THAT_RECORD_KEYS = ("stream_turns", "api", "credentials")
"""Functions that record the last use of API keys. A server that answers tool requests has used one of them before."""

_Result = TypeVar("_Result")
ProxyHandler: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]


def make_handler(router: Router) -> ProxyHandler:
    """Make the Lambda handler of a function behind API Gateway."""

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return to_proxy_response(handle_request(get_resources(), router.routes, request_from_event(event)))

    return observability.trace_handler(handler)


def handle_request(resources: Resources, routes: Routes, request: HttpRequest) -> Response:
    """Authenticate a request, call its handler and add the common headers.

    Args:
        routes: The operations that this function serves, with their handlers.
        request: The request as it arrived.

    Returns:
        The response of the handler, or of its error. Nothing is raised.
    """
    observability.reset_log_keys(request_id=request.id)
    begin_request_of_source(request.source)
    admission = _respond_to_errors(request, lambda: admit_request(resources, routes, request))
    if isinstance(admission, Response):
        admission = _shape_error(resources, request, admission)
        return add_response_headers(request, admission, is_readable=_is_readable_by_origin(resources, request))
    route, context = admission
    response = _shape_error(resources, request, _respond_to_errors(request, lambda: route.handler(context)))
    is_readable = normalize_origin(request.origin) in context.tenant.origins
    return add_response_headers(request, response, is_readable=is_readable)


def build_whole_response(resources: Resources, request: HttpRequest, response: Response) -> Response:
    """Return what is sent after a stream that its client wants whole, with the headers of the response to the request.

    Args:
        request: The request.
        response: The response whose stream was read to its end.
    """
    assert response.build_whole is not None
    whole = _shape_error(resources, request, _respond_to_errors(request, response.build_whole))
    return replace(whole, headers={**response.headers, **whole.headers})


def _shape_error(resources: Resources, request: HttpRequest, response: Response) -> Response:
    """Return the response with its error in the form that the clients of its path read."""
    shaped = shape_cms_agent_error(request.path, response, resources.clock.now_iso())
    return shape_openai_error(request.path, shaped)


def admit_request(
    resources: Resources, routes: Routes, request: HttpRequest
) -> tuple[Route, RequestContext] | Response:
    """Find the request's route and authenticate its caller.

    Returns:
        The route and the context for its handler; or the response, where no caller is needed for it.

    Raises:
        ApiError: The request is refused.
    """
    matches = find_routes(routes, request.path)
    methods = [route.operation.method for route, _ in matches] or _find_methods_elsewhere(request.path)
    if request.method == "OPTIONS":
        return _respond_to_preflight(resources, request, methods or list(_METHODS))
    if methods and request.method not in methods:
        return Response(405, {"error": "Method not allowed"}, {"Allow": ", ".join([*methods, "OPTIONS"])})
    if not matches:
        raise PathNotFound("Not found")
    route, path_parameters = matches[methods.index(request.method)]
    if isinstance(route, PublicRoute):
        return _answer_public(resources, route, replace(request, path_parameters=path_parameters))
    return route, _build_context(resources, route, replace(request, path_parameters=path_parameters))


def _answer_public(resources: Resources, route: PublicRoute, request: HttpRequest) -> Response:
    def act() -> Response:
        check_parameters(request, route.operation.parameters)
        return route.handler(resources, request)

    if not route.operation.is_open_to_pages:
        return act()
    response = _respond_to_errors(request, act)
    return replace(response, headers={**response.headers, "Access-Control-Allow-Origin": "*"})


def add_response_headers(request: HttpRequest, response: Response, *, is_readable: bool) -> Response:
    """Add the headers that every response has.

    Args:
        is_readable: Let the page that sent the request read the response (CORS).
    """
    headers = {**_STANDARD_HEADERS, "X-Request-Id": request.id, "Vary": "Origin", **response.headers}
    if response.is_empty:
        del headers["Content-Type"]
    if is_readable:
        headers |= {"Access-Control-Allow-Origin": request.origin, "Access-Control-Allow-Credentials": "true"}
        headers.setdefault("Access-Control-Expose-Headers", _EXPOSED_HEADERS)
    return replace(response, headers=headers)


def _find_methods_elsewhere(path: str) -> list[str]:
    """Return the methods of a path that another function serves. This one answers its other methods (decision 0246)."""
    from fermata.wire.operations.surface import OPERATIONS  # imported here, because few requests need all operations

    return find_methods(OPERATIONS, path)


def _build_context(resources: Resources, route: Route, request: HttpRequest) -> RequestContext:
    if route.precondition:
        route.precondition(request)
    caller = authenticate(resources, request.headers, request.method)
    observability.add_log_keys(tenant=caller.tenant, user=caller.user)
    require_capability(caller, *route.operation.capabilities)
    if caller.api_key and route.operation.function in _FUNCTIONS_THAT_RECORD_KEYS:
        record_api_key_use(resources, caller)
    if not caller.allows_scope(scope := request.path_parameters.get("scope", "")) and scope:
        raise Forbidden(f"Forbidden: this key is not for the scope {scope}.")
    check_parameters(request, route.operation.parameters)
    return RequestContext(resources, request, caller, get_tenant(resources, caller.tenant))


def _is_readable_by_origin(resources: Resources, request: HttpRequest) -> bool:
    """Return whether pages of this origin may read a response. Before the caller is known, those of all tenants may.

    False if the origins cannot be looked up.
    """
    if not request.origin:
        return False
    return _respond_to_errors(request, lambda: is_registered_origin(resources, request.origin)) is True


def _respond_to_preflight(resources: Resources, request: HttpRequest, methods: list[str]) -> Response:
    allowed = ", ".join([*methods, "OPTIONS"])
    if not request.origin:
        return Response(204, headers={"Allow": allowed})
    if not is_registered_origin(resources, request.origin):
        raise OriginRefused("Forbidden: invalid origin", reason="preflight")
    headers = {
        "Allow": allowed,
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
    }
    return Response(204, headers=headers)


def _respond_to_errors(request: HttpRequest, act: Callable[[], _Result]) -> _Result | Response:
    try:
        return act()
    except Exception as error:  # noqa: BLE001 (the edge of the service: the caller gets a response to every error)
        return response_from_error(error, request.id)
