"""Recognise the generation of an Instatic editor by what it sends (decision 0210)."""

from typing import get_args

from fermata.domain.dialect import NEWEST_GENERATION, OLDEST_GENERATION, EditorGeneration, ToolNameVariant
from fermata.domain.errors import InvalidRequest
from fermata.wire.http.routing import RequestContext

GENERATION_PARAMETER = "generation"


def detect_editor_generation(
    context: RequestContext, tool_names: ToolNameVariant, *, has_content: bool
) -> EditorGeneration:
    """Return the generation of the editor that sends a prompt: only the newest sends `content` instead of `prompt`.

    Args:
        context: The request.
        tool_names: The variant of the tool names that the client knows.
        has_content: Whether the prompt is in the member `content`.
    """
    is_newest = has_content and tool_names == "prefixed" and context.tenant.dialect == "instatic"
    return NEWEST_GENERATION if is_newest else OLDEST_GENERATION


def select_listed_generation(context: RequestContext, tool_names: ToolNameVariant) -> EditorGeneration:
    """Return the generation whose tools are listed: that of the query, else the newest that the tenant may have.

    Raises:
        InvalidRequest: The query names no generation.
    """
    requested = context.request.query.get(GENERATION_PARAMETER, "")
    if not requested:
        return detect_editor_generation(context, tool_names, has_content=True)
    generations: tuple[EditorGeneration, ...] = get_args(EditorGeneration)
    for generation in generations:
        if requested == generation:
            return generation
    raise InvalidRequest(f"'{GENERATION_PARAMETER}' says whose tools are listed: {' or '.join(generations)}.")
