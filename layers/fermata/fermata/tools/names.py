"""What a tool is called on the wire.

The canonical names are the seed's (`insertHtml`, `list_tokens`); newer editors know the same tools under prefixed names
(`site_insert_html`, `site_list_tokens`). This file is the only place that knows both.
"""

import re
from enum import StrEnum

from fermata.tools.tool import Tool
from fermata.words.scopes import SCOPES


class Names(StrEnum):
    SEED = "seed"
    PREFIXED = "prefixed"


def wire_name(tool: Tool, names: Names) -> str:
    return prefixed_name(tool) if names is Names.PREFIXED else tool.name


def prefixed_name(tool: Tool) -> str:
    """Only the toolsets of the editor's own scopes have prefixed names; any other tool keeps its name."""
    prefix = f"{tool.toolset}_"
    if tool.toolset not in SCOPES or tool.name.startswith(prefix):
        return tool.name
    return prefix + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool.name).lower()
