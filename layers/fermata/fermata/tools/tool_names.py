"""What a tool is called on the wire.

The canonical names are the seed's (`insertHtml`, `list_tokens`); newer editors know the same tools under prefixed names
(`site_insert_html`, `site_list_tokens`). This file is the only place that knows both.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from fermata.domain.scopes import SCOPES
from fermata.tools.tool import Tool


class ToolNaming(StrEnum):
    CANONICAL = "seed"
    PREFIXED = "prefixed"


def get_wire_name(tool: Tool, naming: ToolNaming) -> str:
    return format_tool_name(tool.toolset, tool.name, naming)


def get_prefixed_name(tool: Tool) -> str:
    return format_tool_name(tool.toolset, tool.name, ToolNaming.PREFIXED)


def format_tool_name(toolset: str, name: str, naming: ToolNaming) -> str:
    """Only the toolsets of the editor's own scopes have prefixed names; any other tool keeps its name."""
    prefix = f"{toolset}_"
    if naming is ToolNaming.CANONICAL or toolset not in SCOPES or name.startswith(prefix):
        return name
    return prefix + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def insert_tool_names(text: str, tools: Iterable[Tool], naming: ToolNaming) -> str:
    """A prompt in which `{insertHtml}` stands for what that tool is called; `{{` and `}}` are braces."""
    return text.format_map({tool.name: get_wire_name(tool, naming) for tool in tools})
