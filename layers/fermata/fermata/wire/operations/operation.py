"""What one method on one path is for: enough to route it, to admit a caller to it, and to document it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from fermata.aws.resources import Resources
from fermata.wire.http.dispatch import PublicRoute, RequestContext, Route
from fermata.wire.http.messages import HttpRequest, Response

JSON_MEDIA_TYPE = "application/json"


@dataclass(frozen=True)
class SuccessResponse:
    """A successful response. `shape` names a class of wire/bodies/responses.py, so that no handler has to load it."""

    description: str
    model: str = ""
    status: int = 200
    media_type: str = JSON_MEDIA_TYPE


@dataclass(frozen=True)
class RequestParameter:
    """A parameter of the query or a header. `schema` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False
    location: str = "query"


@dataclass(frozen=True, kw_only=True)
class BaseOperation:
    """`refusals` are the statuses of its own; what any operation may answer is added where it is documented."""

    name: str
    method: str
    path: str
    summary: str
    responses: tuple[SuccessResponse, ...]
    description: str = ""
    parameters: tuple[RequestParameter, ...] = ()
    body: type[BaseModel] | None = None
    requires_body: bool = True
    """False: a request without a body means the same as one with an empty object."""
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class Operation(BaseOperation):
    """For callers who have at least one of the capabilities."""

    of: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return self.of

    def to(
        self, verb: Callable[[RequestContext], Response], first: Callable[[HttpRequest], None] | None = None
    ) -> Route:
        return Route(self.method, self.path, verb, self.of, first)


@dataclass(frozen=True, kw_only=True)
class PublicOperation(BaseOperation):
    """For anybody."""

    def to(self, verb: Callable[[Resources], Response]) -> PublicRoute:
        return PublicRoute(self.method, self.path, verb)
