"""Which generation of clients a tenant's browsers speak (design §7)."""

from collections.abc import Callable
from typing import Literal

Dialect = Literal["fermata", "instatic"]
ToolNameVariant = Literal["seed", "prefixed"]
"""What a tenant's editor calls the tools: `insertHtml`, or `site_insert_html` (tools/tool_names.py)."""
ToolNameMapper = Callable[[str], str]
"""What a tool is called towards somebody, by any of its names; a name that is no tool's stays."""
