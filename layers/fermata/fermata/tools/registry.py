"""Load the toolset, system prompt and situation of a scope on first use.

`domain/scopes.py` registers them by path. A round of a site turn therefore imports neither the tools of other scopes
nor the code that reads snapshots.
"""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, cast

from fermata.domain.content_frames import FRAMES_RULE, escape_frames_in_text
from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration, ToolNameMapper, ToolNameVariant
from fermata.domain.scopes import SCOPES
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset

_PROMPT_WITHOUT_TOOLS = (
    "You help the user of a content system in its {scope} area. You have no tools there yet, so answer from what you "
    "are told and say so when something would need one."
)


def get_toolset(scope: str, generation: EditorGeneration = OLDEST_GENERATION) -> Toolset:
    """Return the tools of a scope, loaded on first use; an empty toolset for a scope that has none.

    Args:
        scope: The scope.
        generation: The generation of editors whose schemas the tools have.
    """
    definition = SCOPES.get(scope)
    if definition is None:
        return Toolset(scope)
    return cast(Toolset, resolve_name(definition.toolset)).for_generation(generation)


def get_tool_namer(scope: str, naming: ToolNameVariant) -> ToolNameMapper:
    """Return a function that gives the tools of a scope the names a client uses (wire/http/tool_names_header.py)."""
    return get_toolset(scope).get_tool_namer(ToolNaming(naming))


def build_system_prompt(scope: str, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """Build the stable part of the prompt.

    It depends on the scope and the tool names only, so that providers can cache it (decision 0100).
    """
    definition = SCOPES.get(scope)
    if definition is None:
        return _PROMPT_WITHOUT_TOOLS.format(scope=scope) + FRAMES_RULE
    return cast(Callable[[ToolNaming], str], resolve_name(definition.prompt))(naming) + FRAMES_RULE


def build_situation(scope: str, snapshot: Any, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
    """Build the part of the prompt that changes from turn to turn.

    Drivers put it at the end of the request, between tags. Text of users cannot close them: a `<` that could start such
    a tag is escaped.

    Args:
        scope: The scope of the turn.
        snapshot: The document's state as its editor posted it; None without one.
        naming: The variant of the tool names that the text mentions.
    """
    definition = SCOPES.get(scope)
    if definition is None:
        return ""
    text = cast(Callable[[Any, ToolNaming], str], resolve_name(definition.situation))(snapshot, naming)
    return escape_frames_in_text(text)
