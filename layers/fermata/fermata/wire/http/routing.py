"""Bind handlers to operations, and find the routes of a path."""

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import TypeAlias, TypeVar

from pydantic import BaseModel

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.use_limits import CallerLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.auth.tenant import Tenant
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.operations.operation import BaseOperation, FunctionName, Operation, PublicOperation

_Body = TypeVar("_Body", bound=BaseModel)


@value_dataclass(frozen=True)
class RequestContext:
    """A request whose caller is authenticated and has one of the operation's capabilities."""

    resources: Resources
    request: HttpRequest
    caller: Caller
    tenant: Tenant

    @property
    def caller_limits(self) -> CallerLimits:
        """What the caller and its tenant may use: the tenant's limits, and the deployment's where it has none."""
        return self.tenant.limits.apply_to(self.resources.settings.caller_limits)

    @property
    def authorization(self) -> str:
        """The caller's Authorization header, for what the tenant has allowed to receive it."""
        return self.request.headers.get("authorization", "")

    @property
    def path_parameters(self) -> Mapping[str, str]:
        """The decoded parts of the path, by the names in the operation's template."""
        return self.request.path_parameters

    def parse_body(self, model: type[_Body]) -> _Body:
        """Parse the request's body as `parse_body` of json_body does.

        Unknown members are ignored in requests of Instatic's browsers, because Instatic's own server ignores them.
        """
        return parse_body(self.request, model, ignore_unknown=self.tenant.dialect == "instatic")


RequestHandler: TypeAlias = Callable[[RequestContext], Response]
PublicHandler: TypeAlias = Callable[[Resources], Response]
PublicRequestHandler: TypeAlias = Callable[[Resources, HttpRequest], Response]
Precondition: TypeAlias = Callable[[HttpRequest], None]
"""A check of the request before its caller is authenticated. It raises the error to respond with."""


@value_dataclass(frozen=True)
class Route:
    """An operation and its handler."""

    operation: Operation
    handler: RequestHandler
    precondition: Precondition | None = None


@value_dataclass(frozen=True)
class PublicRoute:
    """A public operation and its handler."""

    operation: PublicOperation
    handler: PublicRequestHandler


Routes: TypeAlias = Sequence[Route | PublicRoute]


class Router:
    """The routes of one Lambda function. Its handlers are bound by decorators.

    router = Router("api")

    @router.handles(defaults.SHOW_DEFAULTS)
    def show_defaults(context: RequestContext) -> Response: ...
    """

    def __init__(self, function: FunctionName) -> None:
        self.function = function
        self.routes: list[Route | PublicRoute] = []

    def handles(
        self, operation: Operation, *, precondition: Precondition | None = None
    ) -> Callable[[RequestHandler], RequestHandler]:
        """Bind the decorated function to an operation of this Lambda function."""

        def bind(handler: RequestHandler) -> RequestHandler:
            self._add(operation, Route(operation, handler, precondition))
            return handler

        return bind

    def handles_by_path(self, operation: Operation, path: str) -> None:
        """Bind an operation to a handler that is loaded at its first request, because few instances serve it.

        Args:
            operation: The operation.
            path: The handler, as `package.module:function`.
        """

        def handle(context: RequestContext) -> Response:
            handler: RequestHandler = resolve_name(path)
            return handler(context)

        self._add(operation, Route(operation, handle))

    def handles_public(self, operation: PublicOperation) -> Callable[[PublicHandler], PublicHandler]:
        """Bind the decorated function to a public operation of this Lambda function."""

        def bind(handler: PublicHandler) -> PublicHandler:
            self._add(operation, PublicRoute(operation, lambda resources, _request: handler(resources)))
            return handler

        return bind

    def handles_public_request(
        self, operation: PublicOperation
    ) -> Callable[[PublicRequestHandler], PublicRequestHandler]:
        """Bind a function that reads the request to a public operation, and checks itself who has sent it."""

        def bind(handler: PublicRequestHandler) -> PublicRequestHandler:
            self._add(operation, PublicRoute(operation, handler))
            return handler

        return bind

    def handles_public_by_path(self, operation: PublicOperation, path: str) -> None:
        """Bind a public operation to a handler that is loaded at its first request, and checks who has sent it.

        Args:
            operation: The operation.
            path: The handler, as `package.module:function`.
        """

        def handle(resources: Resources, request: HttpRequest) -> Response:
            handler: PublicRequestHandler = resolve_name(path)
            return handler(resources, request)

        self._add(operation, PublicRoute(operation, handle))

    def include(self, other: "Router") -> None:
        """Bind the operations of another router of this Lambda function too: those of one subject."""
        for route in other.routes:
            self._add(route.operation, route)

    def _add(self, operation: BaseOperation, route: Route | PublicRoute) -> None:
        if operation.function != self.function:
            raise ValueError(f"{operation.name} is served by the function {operation.function}, not {self.function}.")
        if any(route.operation is operation for route in self.routes):
            raise ValueError(f"{operation.name} has a handler already.")
        self.routes.append(route)


def find_routes(routes: Routes, path: str) -> list[tuple[Route | PublicRoute, Mapping[str, str]]]:
    """Find the routes of a path, one for each method, with their path parameters.

    A path without parameters hides those that only match it, as in API Gateway.
    """
    segments = path.split("/")
    found: list[tuple[Route | PublicRoute, Mapping[str, str]]] = [
        (route, parameters)
        for route in routes
        if (parameters := _match_path(route.operation.route_segments, segments)) is not None
    ]
    return [match for match in found if not match[1]] or found


def find_methods(operations: Sequence[BaseOperation], path: str) -> list[str]:
    """Return the methods of the operations on a path, which hide others as in `find_routes`."""
    segments = path.split("/")
    matches = [(operation.method, _match_path(operation.route_segments, segments)) for operation in operations]
    found = [(method, parameters) for method, parameters in matches if parameters is not None]
    return [method for method, parameters in found if not parameters] or [method for method, _ in found]


def _match_path(template: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """Return the values of the template's `{name}` segments, or None if the path does not match it.

    An empty segment is no value. The last segment may be `{name+}`, whose value is one segment or several. A request is
    compared with every route, so most paths are refused by their number of segments.
    """
    if len(template) != len(segments):
        if len(template) > len(segments) or not template[-1].endswith("+}"):
            return None
        last = len(template) - 1
        segments = [*segments[:last], "/".join(segments[last:])]
    parameters = {}
    for expected, segment in zip(template, segments, strict=True):
        if expected.startswith("{"):
            if not segment:
                return None
            parameters[expected[1:-1].removesuffix("+")] = segment
        elif segment != expected:
            return None
    return parameters
