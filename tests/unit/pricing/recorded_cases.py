"""Read the recorded cases, and build catalogues as OpenRouter sends them."""

import json
from pathlib import Path
from typing import Any

_CASES = json.loads(Path(__file__).with_name("cases.json").read_text())


def read_cases(area: str) -> list[Any]:
    matches = [case for case in _CASES if case["area"] == area]
    assert matches, area
    return matches


def case_name(case: Any) -> str:
    return f"{case['id']} {case['note']}".strip()


def catalogue_entry(
    identity: str, prompt: Any = "0.000003", completion: Any = "0.000015", **members: Any
) -> dict[str, Any]:
    pricing = {"prompt": prompt, "completion": completion, "request": "0", **members.pop("pricing", {})}
    return {"id": identity, "name": identity, "context_length": 200_000, "pricing": pricing, **members}


def catalogue_body(*models: Any) -> bytes:
    return json.dumps({"data": list(models)}).encode()
