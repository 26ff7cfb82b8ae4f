"""Which generation of clients a tenant's browsers speak (design §7)."""

from typing import Literal

Dialect = Literal["fermata", "instatic"]
ToolNames = Literal["seed", "prefixed"]
"""What a tenant's editor calls the tools: `insertHtml`, or `site_insert_html` (tools/names.py)."""
