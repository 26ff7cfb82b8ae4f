"""Register the toolset, system prompt and situation of each scope, and load them on first use.

They are registered by path. A round of a site turn therefore imports neither the tools of other scopes nor the code
that reads snapshots.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, cast

from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration, ToolNameMapper, ToolNameVariant
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset


@dataclass(frozen=True, kw_only=True)
class ScopeRegistration:
    """What one scope consists of. Each attribute is a path `package.module:name`.

    Attributes:
        toolset: A Toolset.
        prompt: A function from a ToolNaming to the stable part of the prompt.
        situation: A function from a snapshot and a ToolNaming to the part that changes from turn to turn.
    """

    toolset: str
    prompt: str
    situation: str


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
"""A scope that is not registered has no tools, a general prompt and an empty situation."""

_CONTEXT_TAG_START = re.compile(r"<(?=[\W_]*context)", re.IGNORECASE)
"""The start of a tag like the one that drivers put around a situation, also with spaces or invisible characters."""
_PROMPT_WITHOUT_TOOLS = (
    "You help the user of a content system in its {scope} area. You have no tools there yet, so answer from what you "
    "are told and say so when something would need one."
)


def get_toolset(scope: str, generation: EditorGeneration = OLDEST_GENERATION) -> Toolset:
    """Return the tools of a scope, loaded on first use; an empty toolset for a scope that is not registered.

    Args:
        scope: The scope.
        generation: The generation of editors whose schemas the tools have.
    """
    registration = SCOPE_REGISTRY.get(scope)
    if registration is None:
        return Toolset(scope)
    return cast(Toolset, resolve_name(registration.toolset)).for_generation(generation)


def get_tool_namer(scope: str, naming: ToolNameVariant) -> ToolNameMapper:
    """Return a function that gives the tools of a scope the names a client uses (wire/http/tool_names_header.py)."""
    return get_toolset(scope).get_tool_namer(ToolNaming(naming))


def build_system_prompt(scope: str, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """Build the stable part of the prompt.

    It depends on the scope and the tool names only, so that providers can cache it (decision 0100).
    """
    registration = SCOPE_REGISTRY.get(scope)
    if registration is None:
        return _PROMPT_WITHOUT_TOOLS.format(scope=scope)
    return cast(Callable[[ToolNaming], str], resolve_name(registration.prompt))(naming)


def build_situation(scope: str, snapshot: Any, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """Build the part of the prompt that changes from turn to turn.

    Drivers put it at the end of the request, between tags. Text of users cannot close them: a `<` that could start such
    a tag is escaped.

    Args:
        scope: The scope of the turn.
        snapshot: The document's state as its editor posted it; None without one.
        naming: The variant of the tool names that the text mentions.
    """
    registration = SCOPE_REGISTRY.get(scope)
    if registration is None:
        return ""
    text = cast(Callable[[Any, ToolNaming], str], resolve_name(registration.situation))(snapshot, naming)
    return _CONTEXT_TAG_START.sub("&lt;", text)
