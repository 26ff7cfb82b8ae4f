"""Cases of the CMS: its tools as their documents name them, and what its rules make of a call."""

import json
from typing import Any

from tests.shared_cases.cases import FOLDER


def read_cms_tools() -> list[dict[str, Any]]:
    """Return the tools by which the CMS is known, in the order of their documents."""
    tools: list[dict[str, Any]] = json.loads((FOLDER / "cms_tools.json").read_text())
    return tools


def read_cms_cases(area: str) -> list[dict[str, Any]]:
    """Return the cases of one area, such as `cms_rules`."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / "cms_cases.json").read_text())
    return [case for case in cases if case["area"] == area]
