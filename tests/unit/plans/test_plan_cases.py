"""The normaliser, the repairs and the destructive gate on a table of cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.plans.destructive_gate import find_destructive_reasons
from fermata.plans.edit_plan import InvalidPlan, parse_edit_plan
from fermata.plans.json_repair_ladder import extract_json_object, read_broken_json
from fermata.plans.normalization.normalize_plan import normalize_plan
from fermata.plans.normalization.plan_context import PlanContext
from fermata.plans.operations import PLAN_OPERATIONS
from fermata.plans.page_model import Page

CASES = json.loads((Path(__file__).parent / "plan_cases.json").read_text())


def make_context(case: dict[str, Any]) -> PlanContext:
    pages = (Page.from_wire(case["page"]),) if case["page"] else ()
    return PlanContext(case["defaultSlug"], pages, case["message"], now="2026-01-01T00:00:00.000Z")


def simplify(operation: dict[str, Any]) -> dict[str, Any]:
    """Reduce pages and blocks to what the cases say of them."""
    simple = dict(operation)
    if "page" in simple:
        page = simple["page"]
        simple["page"] = {name: page[name] for name in ("id", "slug", "title")} | {"blocks": len(page["blocks"])}
    if "block" in simple:
        block = simple["block"]
        simple["block"] = {"type": block["type"], "props_keys": sorted(block["props"])}
    return simple


@pytest.mark.parametrize("case", CASES["normalization"], ids=lambda case: case["id"])
def test_a_submitted_plan_is_normalized(case: dict[str, Any]) -> None:
    expected = case["expected"]
    candidate = normalize_plan(case["candidate"], make_context(case)).candidate
    assert candidate["intent"] == expected["intent"]
    assert [simplify(operation) for operation in candidate["ops"]] == expected["ops"]
    for member in ("change_log", "suggested_next_actions"):
        assert candidate[member] == expected.get(member, candidate[member])
    if expected["schema_valid"]:
        assert parse_edit_plan(candidate).intent == expected["intent"]
    else:
        with pytest.raises(InvalidPlan):
            parse_edit_plan(candidate)


@pytest.mark.parametrize("case", CASES["repair"], ids=lambda case: case["id"])
def test_broken_json_is_read_by_the_mildest_repair(case: dict[str, Any]) -> None:
    if "extracted" in case:
        assert extract_json_object(case["text"]) == case["extracted"]
        return
    repaired = read_broken_json(case["text"])
    assert repaired is not None
    assert (repaired.value, repaired.strategy) == (case["parsed"], case["strategy"])


@pytest.mark.parametrize("case", CASES["gate"], ids=lambda case: case["id"])
def test_a_destructive_plan_is_held(case: dict[str, Any]) -> None:
    operations = PLAN_OPERATIONS.validate_python(case["ops"])
    assert [reason.kind for reason in find_destructive_reasons(operations, case["blockCounts"])] == case["reasons"]
