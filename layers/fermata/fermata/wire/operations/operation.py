"""Define the record of one HTTP operation: what routes it, admits a caller to it, and documents it."""

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from pydantic import BaseModel

from fermata.domain.value_dataclass import value_dataclass

JSON_MEDIA_TYPE = "application/json"

FunctionName = Literal["api", "credentials", "redraw_images", "stream_turns", "tool_result"]
"""Lambda functions that serve HTTP requests, by their folder in `functions/`."""


@value_dataclass(frozen=True)
class SuccessResponse:
    """A successful response.

    `model` is a pydantic model, or the name of one in wire/bodies/responses. A name keeps the functions from
    importing models that only the OpenAPI document needs.
    """

    description: str
    model: type[BaseModel] | str = ""
    status: int = 200
    media_type: str = JSON_MEDIA_TYPE
    stream_media_type: str = ""
    """The media type of the response to a client that asks for a stream; empty if nobody can."""


@value_dataclass(frozen=True)
class RequestParameter:
    """A parameter of the query string, a header, or the path. `schema` is JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False
    location: Literal["query", "header", "path"] = "query"


@value_dataclass(frozen=True, kw_only=True)
class BaseOperation:
    """One method on one path.

    `name` is the operation id of the OpenAPI document. `function` is the Lambda function that serves the operation;
    the function's router binds the handler, so that no function imports the handlers of another.
    """

    name: str
    function: FunctionName
    method: str
    path: str
    summary: str
    responses: tuple[SuccessResponse, ...]
    capabilities: tuple[str, ...] = field(default=(), init=False)
    """The caller has at least one of them."""
    description: str = ""
    parameters: tuple[RequestParameter, ...] = ()
    body: type[BaseModel] | None = None
    requires_body: bool = True
    """False: a request without a body means the same as one with an empty object."""
    has_subtree: bool = False
    """Whether the last parameter of the path may have several segments."""
    errors: Mapping[int, str] = field(default_factory=dict)
    """Descriptions of the error statuses that only this operation has. The OpenAPI document adds the common ones."""
    error_model: str = "ErrorResponse"
    """The name of the model of its errors, which is that of its clients."""

    @property
    def route_path(self) -> str:
        """The path as routes have it: a parameter of several segments is marked by `+`."""
        return f"{self.path.removesuffix('}')}+}}" if self.has_subtree else self.path

    @functools.cached_property
    def route_segments(self) -> tuple[str, ...]:
        """The segments of `route_path`."""
        return tuple(self.route_path.split("/"))


@value_dataclass(frozen=True, kw_only=True)
class Operation(BaseOperation):
    """An operation for callers who have at least one of the capabilities."""

    capabilities: tuple[str, ...] = field()


@value_dataclass(frozen=True, kw_only=True)
class PublicOperation(BaseOperation):
    """An operation that needs no token.

    Attributes:
        is_open_to_pages: Whether pages of every origin may read its responses, which say nothing about who asks.
    """

    is_open_to_pages: bool = False
