"""What one method on one path is for: enough to route it, to admit a caller to it, and to document it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from fermata.aws.desk import Desk
from fermata.wire.edge import PublicRoute, Route, Visit
from fermata.wire.http import Answer, Request

JSON = "application/json"


@dataclass(frozen=True)
class Told:
    """An answer when all goes well. `shape` is a class of wire/answers.py by name, so that no door has to load it."""

    says: str
    shape: str = ""
    status: int = 200
    media: str = JSON


@dataclass(frozen=True)
class Given:
    """A parameter of the query or a header. `schema` is JSON Schema."""

    name: str
    says: str
    schema: Mapping[str, Any]
    required: bool = False
    place: str = "query"


@dataclass(frozen=True, kw_only=True)
class Described:
    """`refusals` are the statuses of its own; what any operation may answer is added where it is documented."""

    name: str
    method: str
    path: str
    summary: str
    told: tuple[Told, ...]
    says: str = ""
    given: tuple[Given, ...] = ()
    body: type[BaseModel] | None = None
    needs_body: bool = True
    """False: a request without a body means the same as one with an empty object."""
    refusals: Mapping[int, str] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class Operation(Described):
    """For callers who have at least one of the capabilities."""

    of: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return self.of

    def to(self, verb: Callable[[Visit], Answer], first: Callable[[Request], None] | None = None) -> Route:
        return Route(self.method, self.path, verb, self.of, first)


@dataclass(frozen=True, kw_only=True)
class PublicOperation(Described):
    """For anybody."""

    def to(self, verb: Callable[[Desk], Answer]) -> PublicRoute:
        return PublicRoute(self.method, self.path, verb)
