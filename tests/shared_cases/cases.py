"""Cases that hold for several editors: what a call makes of a page, and what is left of HTML from a model."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def read_cases(name: str, executor: str) -> list[dict[str, Any]]:
    """Return the cases of a table that hold for an executor, `file` or `grapesjs`."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return [case for case in cases if case.get("only", executor) == executor]
