"""Cases of governance besides the CMS's and the studio's: manifests, envelopes, aliases, plans that wait, HTTP."""

import json
from typing import Any

from tests.shared_cases.cases import FOLDER


def read_governance_cases(*areas: str) -> list[dict[str, Any]]:
    """Return the cases of areas, such as `envelope`. Where this product decides otherwise, `ours` says why."""
    cases: list[dict[str, Any]] = json.loads((FOLDER / "governance_cases.json").read_text())
    return [case for case in cases if case["area"] in areas]
