"""The tools that the editors know, by scope: names, schemas, permissions and sides, recorded from the editors."""

import json
from pathlib import Path
from typing import Any

_FIXTURES = Path(__file__).parent / "unit" / "tools" / "fixtures"

TOOL_CONTRACT: dict[str, list[dict[str, Any]]] = {
    scope: json.loads((_FIXTURES / f"{scope}_tools.json").read_text()) for scope in ("site", "content", "plugin")
}
