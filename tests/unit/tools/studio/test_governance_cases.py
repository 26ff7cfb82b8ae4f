"""Every recorded case of the studio's governance has its right answer, under its own id."""

from collections import Counter
from typing import Any

import pytest

from fermata.agents.studio.intent import classify_intent
from fermata.content.change_sets.branch_names import read_branch_seconds
from fermata.content.change_sets.change_set_backlog import judge_change_set_health
from fermata.tools.schema.validate_manifest_value import find_schema_violation
from fermata.tools.studio.affected_resources import AffectedResources, list_affected
from fermata.tools.studio.auto_merge import merges_at_once
from fermata.tools.studio.phase_guard import derive_project_phase, refuse_in_phase
from fermata.tools.studio.project_permissions import resolve_member_permissions
from fermata.tools.studio.tool_rules import ProjectPhase
from tests.shared_cases.studio_cases import read_studio_cases
from tests.unit.content.test_validate_content import find_problems

COUNTS = {
    "intent": 20,
    "phase_derivation": 5,
    "phase_guard": 14,
    "branch_health": 7,
    "auto_merge": 6,
    "affected": 5,
    "content_validation": 12,
    "schema_validator": 6,
}


def each_case(area: str) -> pytest.MarkDecorator:
    """Run a test with the input and the right answer of each case of an area."""
    cases = [pytest.param(one["input"], one["expected"], id=one["id"]) for one in read_studio_cases(area)]
    return pytest.mark.parametrize(("given", "expected"), cases)


def test_no_case_is_lost() -> None:
    assert Counter({area: len(read_studio_cases(area)) for area in COUNTS}) == COUNTS


@each_case("intent")
def test_a_message_has_an_intent(given: dict[str, Any], expected: dict[str, Any]) -> None:
    intent = classify_intent(given["message"], given["ui_context"])
    found = {"category": intent.category, "confidence": intent.confidence, "inferred": intent.inferred}
    assert found == expected


@each_case("phase_derivation")
def test_a_project_has_a_phase(given: dict[str, Any], expected: dict[str, Any]) -> None:
    phase = derive_project_phase(
        has_config=given["config"] is not None,
        pending_branches=given["pending_branches"],
        status=given["project_status"],
    )
    assert phase.value == expected["phase"]


@each_case("phase_guard")
def test_a_phase_allows_a_call_or_says_why_not(given: dict[str, Any], expected: dict[str, Any]) -> None:
    refusal = refuse_in_phase(given["tool"], ProjectPhase(given["phase"]))
    found = {"reason_code": refusal.reason, "suggestion_code": refusal.advice} if refusal else {}
    assert {"allowed": refusal is None, **found} == expected


@each_case("branch_health")
def test_branches_have_an_age_and_their_number_a_status(given: dict[str, Any], expected: dict[str, Any]) -> None:
    if "branch" in given:
        assert read_branch_seconds(given["branch"]) == expected["timestamp"]
    else:
        assert judge_change_set_health(given["unmerged"]) == expected["status"]


@each_case("auto_merge")
def test_a_change_is_merged_at_once_or_waits(given: dict[str, Any], expected: dict[str, Any]) -> None:
    permissions = resolve_member_permissions(given.get("workspace_role", "member"), {"role": "editor"})
    branch = expected.get("branch", given.get("branch", "cr/new/init/1-aa"))
    merged = merges_at_once(given["tool"], permissions, workflow=given.get("workflow", "auto-merge"), branch=branch)
    assert merged is expected["merge_called"]


@each_case("affected")
def test_a_call_says_what_it_affects(given: dict[str, Any], expected: dict[str, Any]) -> None:
    if "a" in given:
        found = AffectedResources.from_wire(given["a"]).merge(AffectedResources.from_wire(given["b"]))
    else:
        found = list_affected(given["tool"], given["input"])
    assert {name: value for name, value in found.to_wire().items() if value is not None} == expected


@each_case("content_validation")
def test_content_has_the_problems_that_its_fields_say(given: dict[str, Any], expected: dict[str, Any]) -> None:
    context = given.get("context", {})
    found = find_problems(given["data"], given["fields"], context.get("allEntries"), context.get("currentEntryId", ""))
    assert found == [(one["field"], one["severity"], one["kind"]) for one in expected["errors"]]
    assert expected["valid"] is not any(severity == "error" for _, severity, _ in found)


@each_case("schema_validator")
def test_a_value_fits_a_schema_or_the_place_is_named(given: dict[str, Any], expected: dict[str, Any]) -> None:
    problem = find_schema_violation(given["schema"], given["value"])
    found = {"ok": True} if problem is None else {"ok": False, "path": problem.path}
    assert found == expected
