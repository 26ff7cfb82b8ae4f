"""Read members of responses, and leave out members of requests."""

from collections.abc import Mapping
from typing import TypeVar

from fermata_client.service.errors import InvalidResponseError
from fermata_client.service.json_types import JsonObject

Member = TypeVar("Member")
Value = TypeVar("Value")


def require_member(response: JsonObject, name: str, kind: type[Member]) -> Member:
    """Return a member of a response.

    Raises:
        InvalidResponseError: it is missing, or of another type.
    """
    value = response.get(name)
    if not isinstance(value, kind):
        raise InvalidResponseError(f"The service's answer has no {name!r}.")
    return value


def without_none(members: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the members that are not None. The service treats an absent member as unchanged or default."""
    return {name: value for name, value in members.items() if value is not None}
