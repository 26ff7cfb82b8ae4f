"""Walk through values of any depth, and say where in them something is."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_LONGEST_NAME = 60


class ValuePlace(NamedTuple):
    """Where a value is: in what, and under which name. Paths are written only of what is refused."""

    parent: "ValuePlace | None"
    name: str | int

    def to_path(self) -> str:
        """Return the path as problems name it, with names of a length that people read."""
        path, place = "", self
        while True:
            own = f"[{place.name}]" if isinstance(place.name, int) else place.name[:_LONGEST_NAME]
            path = f"{own}{'' if path.startswith('[') or not path else '.'}{path}"
            if place.parent is None:
                return path
            place = place.parent


def iter_containers(value: Any) -> Iterator[tuple[ValuePlace | None, Mapping[str, Any] | list[Any]]]:
    """Yield the objects and lists of a value, and where they are. It takes time in proportion to their members.

    Args:
        value: What JSON may hold.
    """
    waiting: list[tuple[ValuePlace | None, Any]] = [(None, value)] if _has_members(value) else []
    while waiting:
        place, container = waiting.pop()
        yield place, container
        waiting += [
            (ValuePlace(place, name), member) for name, member in iter_members(container) if _has_members(member)
        ]


def iter_members(container: Mapping[str, Any] | list[Any]) -> Iterator[tuple[str | int, Any]]:
    """Yield the members of an object or a list, with their names or numbers."""
    yield from container.items() if isinstance(container, Mapping) else enumerate(container)


def _has_members(value: Any) -> bool:
    return isinstance(value, Mapping | list)
