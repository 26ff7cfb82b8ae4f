"""Define a tenant's dialect, the variant of the API that its clients use, and the names its tools have."""

from collections.abc import Callable
from typing import Literal

Dialect = Literal["fermata", "instatic"]
ClientProtocol = Literal["", "ui", "agui", "openai", "mcp", "cms", "studio"]
"""The protocol that a client speaks: events a line (empty), the AI SDK's stream of UI messages, AG-UI, OpenAI's,
MCP, the CMS agent's own, or the studio's."""
ToolNameVariant = Literal["seed", "prefixed"]
"""The variant of tool names: `insertHtml` (seed) or `site_insert_html` (prefixed). See tools/tool_names.py."""
EditorGeneration = Literal["0.0.6", "0.0.11"]
"""The Instatic release whose editor introduced a set of tool schemas, which the releases until the next one share."""
OLDEST_GENERATION: EditorGeneration = "0.0.6"
NEWEST_GENERATION: EditorGeneration = "0.0.11"
ToolNameMapper = Callable[[str], str]
"""Converts any name of a tool to the name in one variant. Names that no tool has are returned unchanged."""
