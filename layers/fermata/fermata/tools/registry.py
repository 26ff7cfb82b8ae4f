"""Which tools, prompt and situation belong to a scope.

The table names them, and they are loaded when somebody first asks for their scope: a round of a site's turn pays
neither for another scope's tools nor for the reader of snapshots.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, cast

from fermata.domain.dialect import ToolNameMapper, ToolNameVariant
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset


@dataclass(frozen=True, kw_only=True)
class ScopeRegistration:
    """`prompt` takes Names and says what never changes; `situation` takes the snapshot and Names."""

    toolset: str = ""
    prompt: str = ""
    situation: str = ""


SCOPE_REGISTRY: dict[str, ScopeRegistration] = {
    "site": ScopeRegistration(
        toolset="fermata.tools.site.toolset:SITE_TOOLSET",
        prompt="fermata.tools.site.prompt:system_prompt",
        situation="fermata.tools.site.situation:situation",
    ),
    "content": ScopeRegistration(
        toolset="fermata.tools.content.toolset:CONTENT_TOOLSET",
        prompt="fermata.tools.content.prompt:system_prompt",
        situation="fermata.tools.content.situation:situation",
    ),
    "plugin": ScopeRegistration(
        toolset="fermata.tools.plugin.toolset:PLUGIN_TOOLSET",
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


def get_toolset(scope: str) -> Toolset:
    named = _area(scope).toolset
    return cast(Toolset, resolve_name(named)) if named else Toolset(scope)


def get_tool_namer(scope: str, naming: ToolNameVariant) -> ToolNameMapper:
    """What the scope's tools are called towards a client that knows these names (wire/http/tool_names_header.py)."""
    return get_toolset(scope).get_tool_namer(ToolNaming(naming))


def build_system_prompt(scope: str, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """The stable part: the same text for every turn of a scope, so that providers can cache it."""
    named = _area(scope).prompt
    return (
        cast(Callable[[ToolNaming], str], resolve_name(named))(naming) if named else _WITHOUT_TOOLS.format(scope=scope)
    )


def build_situation(scope: str, snapshot: Any, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """What changes from turn to turn; comes last in the request, between tags that no text of users can close."""
    named = _area(scope).situation
    told = cast(Callable[[Any, ToolNaming], str], resolve_name(named))(snapshot, naming) if named else ""
    return _FRAME.sub("&lt;", told)


def _area(scope: str) -> ScopeRegistration:
    return SCOPE_REGISTRY.get(scope, ScopeRegistration())
