"""Which tools, prompt and situation belong to a scope.

The table names them, and they are loaded when somebody first asks for their scope: a round of a site's turn pays
neither for another scope's tools nor for the reader of snapshots.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, cast

from fermata.tools.names import Names
from fermata.tools.toolset import Toolset
from fermata.words.dialect import Called, ToolNames


@dataclass(frozen=True, kw_only=True)
class Area:
    """`prompt` takes Names and says what never changes; `situation` takes the snapshot and Names."""

    toolset: str = ""
    prompt: str = ""
    situation: str = ""


AREAS: dict[str, Area] = {
    "site": Area(
        toolset="fermata.tools.site.tools:SITE",
        prompt="fermata.tools.site.prompt:system_prompt",
        situation="fermata.tools.site.situation:situation",
    ),
    "content": Area(
        toolset="fermata.tools.content.tools:CONTENT",
        prompt="fermata.tools.content.prompt:system_prompt",
        situation="fermata.tools.content.situation:situation",
    ),
    "plugin": Area(
        toolset="fermata.tools.plugin.tools:PLUGIN",
        prompt="fermata.tools.plugin.prompt:system_prompt",
        situation="fermata.tools.plugin.situation:situation",
    ),
}
"""A scope that is not here has no tools."""

_FRAME = re.compile(r"<(?=[\W_]*context)", re.IGNORECASE)
"""A tag like those that drivers put around a situation begins, also with a space or something unseen in it."""
_WITHOUT_TOOLS = (
    "You help the user of a content system in its {scope} area. You have no tools there yet, so answer from what you "
    "are told and say so when something would need one."
)


def toolset_for(scope: str) -> Toolset:
    named = _area(scope).toolset
    return cast(Toolset, resolve_name(named)) if named else Toolset(scope)


def naming(scope: str, names: ToolNames) -> Called:
    """What the scope's tools are called towards a client that knows these names (wire/naming.py)."""
    return toolset_for(scope).naming(Names(names))


def system_prompt(scope: str, names: Names = Names.SEED) -> str:
    """The stable part: the same text for every turn of a scope, so that providers can cache it."""
    named = _area(scope).prompt
    return cast(Callable[[Names], str], resolve_name(named))(names) if named else _WITHOUT_TOOLS.format(scope=scope)


def situation(scope: str, snapshot: Any, names: Names = Names.SEED) -> str:
    """What changes from turn to turn; comes last in the request, between tags that no text of users can close."""
    named = _area(scope).situation
    told = cast(Callable[[Any, Names], str], resolve_name(named))(snapshot, names) if named else ""
    return _FRAME.sub("&lt;", told)


def _area(scope: str) -> Area:
    return AREAS.get(scope, Area())
