"""Notice addresses that run a script where a site makes a link of them: `javascript:` and its kind (decision 0569)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fermata.content.validation.content_problem import ContentProblem
from fermata.content.validation.value_places import ValuePlace, iter_containers

_LINK_MEMBER = "href"
_SCRIPT = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
_UNREAD_BY_BROWSERS = re.compile(r"[\x00-\x20\x7f]")


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
    for place, value in iter_containers(content):
        address = value.get(_LINK_MEMBER) if isinstance(value, Mapping) else None
        if isinstance(address, str) and runs_script(address):
            yield describe_script_address(ValuePlace(place, _LINK_MEMBER).to_path())
