"""Notice addresses that run a script where a site makes a link of them: `javascript:` and its kind (decision 0569)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fermata.content.validation.content_problem import ContentProblem

_LINK_MEMBER = "href"
_SCRIPT = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
_UNREAD_BY_BROWSERS = re.compile(r"[\x00-\x20\x7f]")
_LONGEST_NAME = 60


def runs_script(address: str) -> bool:
    """Return whether a browser that follows an address would run what it says, or show it as a page of its own."""
    return _SCRIPT.match(_UNREAD_BY_BROWSERS.sub("", address)) is not None


def describe_script_address(path: str) -> ContentProblem:
    """Return the problem of an address that runs a script.

    Args:
        path: Where it is.
    """
    message = f"{path} may not be an address that runs a script. Begin it with https://, mailto:, tel:, / or #."
    return ContentProblem(field=path, kind="url", message=message)


def find_script_links(content: Mapping[str, Any]) -> Iterator[ContentProblem]:
    """Yield the problems of links, at any depth, whose addresses run a script. A link is an object with an `href`.

    Args:
        content: What a document says, in all languages.
    """
    waiting: list[tuple[_Place | None, Any]] = [(None, content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            address = value.get(_LINK_MEMBER)
            if isinstance(address, str) and runs_script(address):
                yield describe_script_address(_Place(place, _LINK_MEMBER).to_path())
            waiting += [(_Place(place, name), member) for name, member in value.items() if _has_members(member)]
        else:
            waiting += [(_Place(place, number), member) for number, member in enumerate(value) if _has_members(member)]


class _Place(NamedTuple):
    """Where a value is: in what, and under which name. Paths are written only of what is refused."""

    parent: "_Place | None"
    name: str | int

    def to_path(self) -> str:
        """Return the path as problems name it, with names of a length that people read."""
        path, place = str(self.name), self.parent
        while place is not None:
            joint = "" if path.startswith("[") else "."
            own = f"[{place.name}]" if isinstance(place.name, int) else place.name[:_LONGEST_NAME]
            path, place = f"{own}{joint}{path}", place.parent
        return path


def _has_members(value: Any) -> bool:
    return isinstance(value, Mapping | list)
