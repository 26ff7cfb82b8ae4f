"""What a tool is called on the wire.

The canonical names are the seed's (`insertHtml`, `list_tokens`); newer editors know the same tools under prefixed names
(`site_insert_html`, `site_list_tokens`). This file is the only place that knows both.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from fermata.tools.tool import Tool
from fermata.words.scopes import SCOPES


class Names(StrEnum):
    SEED = "seed"
    PREFIXED = "prefixed"


def wire_name(tool: Tool, names: Names) -> str:
    return named(tool.toolset, tool.name, names)


def prefixed_name(tool: Tool) -> str:
    return named(tool.toolset, tool.name, Names.PREFIXED)


def named(toolset: str, name: str, names: Names) -> str:
    """Only the toolsets of the editor's own scopes have prefixed names; any other tool keeps its name."""
    prefix = f"{toolset}_"
    if names is Names.SEED or toolset not in SCOPES or name.startswith(prefix):
        return name
    return prefix + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def with_names(text: str, tools: Iterable[Tool], names: Names) -> str:
    """A prompt in which `{insertHtml}` stands for what that tool is called; `{{` and `}}` are braces."""
    return text.format_map({tool.name: wire_name(tool, names) for tool in tools})
