"""Cases of the governed studio: what its documents and its original say of an input, by id and area."""

import json
from typing import Any

from tests.shared_cases.cases import FOLDER


def read_studio_cases(area: str) -> list[dict[str, Any]]:
    """Return the cases of one area, such as `intent`. Where this product decides otherwise, `ours` says why."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / "studio_cases.json").read_text())
    return [case for case in cases if case["area"] == area]


def read_stream_cases() -> dict[str, dict[str, Any]]:
    """Return the cases of the planner's streams by id: input, and the right answer."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / "stream_cases.json").read_text())
    return {case["id"]: case for case in cases}
