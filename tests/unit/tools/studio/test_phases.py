"""The phase of a project decides which tools are offered, and which calls are allowed (contract §4.1 to §4.3)."""

import pytest

from fermata.tools.studio.phase_guard import derive_project_phase, refuse_in_phase
from fermata.tools.studio.tool_rules import TOOL_RULES, ProjectPhase, list_offered_tools
from fermata.tools.studio.toolset import STUDIO_TOOLSET
from local.seed import CAPABILITIES

SINCE_21_TOOLS = {"update_status", "update_media", "delete_media", "branch_health", "relation_expand"} | {
    "vocabulary",
    "add_locale",
    "delete_model",
}
"""Tools that the list of the recorded cases does not know yet."""


@pytest.mark.parametrize(
    ("has_config", "branches", "status", "phase"),
    [
        (False, [], "active", "uninitialized"),
        (False, ["cr/new/init/1234567890-abcd"], "active", "init_pending"),
        (False, ["cr/content/faq/en/1-aa"], "active", "uninitialized"),
        (True, [], "active", "active"),
        (True, ["cr/new/init/1-aa"], "active", "active"),
        (True, ["cr/new/init/1-aa"], "error", "error"),
        (False, [], "error", "error"),
    ],
)
def test_g001_to_g007_the_phase_of_a_project(has_config: bool, branches: list[str], status: str, phase: str) -> None:
    assert derive_project_phase(has_config=has_config, pending_branches=branches, status=status) == phase


@pytest.mark.parametrize(
    ("phase", "tool"),
    [
        ("uninitialized", "init_project"),
        ("uninitialized", "list_branches"),
        ("uninitialized", "validate_schema"),
        ("init_pending", "merge_branch"),
        ("init_pending", "reject_branch"),
        ("init_pending", "list_branches"),
        ("init_pending", "branch_health"),
        ("active", "save_model"),
        ("error", "merge_branch"),
        ("error", "list_models"),
        ("error", "list_submissions"),
    ],
)
def test_g008_to_g027_calls_that_a_phase_allows(phase: str, tool: str) -> None:
    assert refuse_in_phase(tool, ProjectPhase(phase)) is None


@pytest.mark.parametrize(
    ("phase", "tool", "reason", "advice"),
    [
        ("uninitialized", "save_content", "not_initialized", "call_init_project"),
        ("uninitialized", "merge_branch", "not_initialized", "call_init_project"),
        ("uninitialized", "branch_health", "not_initialized", "call_init_project"),
        ("init_pending", "init_project", "init_already_pending", "merge_or_reject_init_branch"),
        ("init_pending", "save_content", "init_pending_merge", "merge_init_branch_first"),
        ("init_pending", "brain_query", "init_pending_merge", "merge_init_branch_first"),
        ("active", "init_project", "already_initialized", "use_save_content_or_save_model"),
        ("error", "save_content", "project_error", "check_project_settings"),
        ("error", "init_project", "project_error", "check_project_settings"),
        ("error", "brain_search", "project_error", "check_project_settings"),
    ],
)
def test_g009_to_g026_calls_that_a_phase_refuses(phase: str, tool: str, reason: str, advice: str) -> None:
    refusal = refuse_in_phase(tool, ProjectPhase(phase))
    assert refusal is not None
    assert (refusal.reason, refusal.advice) == (reason, advice)
    assert refusal.to_result() == {"error": refusal.message, "suggestion": refusal.suggestion}


def test_g030_and_g031_what_a_model_is_offered() -> None:
    active = set(list_offered_tools(ProjectPhase.ACTIVE)) - SINCE_21_TOOLS
    assert active == TOOL_RULES.keys() - SINCE_21_TOOLS - {"init_project"}
    offered = set(list_offered_tools(ProjectPhase.ERROR)) - SINCE_21_TOOLS
    assert offered == {"list_branches", "list_models", "validate"}


@pytest.mark.parametrize("phase", ProjectPhase)
def test_no_tool_is_offered_that_would_be_refused(phase: ProjectPhase) -> None:
    assert [name for name in list_offered_tools(phase) if refuse_in_phase(name, phase)] == []


def test_the_table_has_all_29_tools() -> None:
    assert len(TOOL_RULES) == 29


def test_g032_the_model_is_told_nothing_of_phases_and_workflows() -> None:
    specs = STUDIO_TOOLSET.build_tool_specs(frozenset(CAPABILITIES), "studio")
    assert {spec.name for spec in specs} == set(TOOL_RULES)
    assert {member for spec in specs for member in spec.model_dump()} == {"name", "description", "input_schema"}
