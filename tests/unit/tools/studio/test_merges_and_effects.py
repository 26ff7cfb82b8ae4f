"""Writes of the studio are merged or wait for a review, and say what clients have to refresh."""

from typing import Any

import pytest

from fermata.content.documents.review_workflow import get_workflow
from fermata.tools.studio.affected_resources import AffectedResources, list_affected
from fermata.tools.studio.auto_merge import MUTATION_EVENTS, merges_at_once, refuse_branch
from fermata.tools.studio.project_permissions import resolve_member_permissions
from fermata.tools.studio.tool_rules import TOOL_RULES

BRANCH = "cr/content/faq/en/1-aa"


@pytest.mark.parametrize(
    ("workflow", "role", "tool", "branch", "merged"),
    [
        ("auto-merge", "member", "save_content", BRANCH, True),
        ("auto-merge", "owner", "save_content", BRANCH, True),
        ("review", "owner", "save_content", BRANCH, True),
        ("review", "admin", "save_content", BRANCH, True),
        ("review", "member", "save_content", BRANCH, False),
        ("review", "member", "init_project", "cr/new/init/1-aa", True),
        ("auto-merge", "owner", "save_content", "", False),
        ("auto-merge", "owner", "delete_content", "", False),
        ("auto-merge", "owner", "merge_branch", BRANCH, False),
        ("auto-merge", "owner", "upload_media", BRANCH, False),
    ],
)
def test_g077_to_g083_what_is_merged_at_once(workflow: str, role: str, tool: str, branch: str, merged: bool) -> None:
    permissions = resolve_member_permissions(role, {"role": "editor"})
    assert merges_at_once(tool, permissions, workflow=workflow, branch=branch) is merged


@pytest.mark.parametrize(
    ("named", "workflow"),
    [({}, "auto-merge"), ({"workflow": "auto-merge"}, "auto-merge"), ({"workflow": "pull-request"}, "review")],
)
def test_changes_wait_in_a_workflow_that_nobody_knows(named: dict[str, Any], workflow: str) -> None:
    assert get_workflow({"config": named}) == workflow


@pytest.mark.parametrize(
    ("branch", "code"), [("contentrain", "permanent_branch"), ("main", "not_a_change_set"), (BRANCH, None)]
)
def test_g086_only_change_sets_are_merged_or_rejected(branch: str, code: str | None) -> None:
    assert refuse_branch(branch) == code


def test_g088_the_events_of_mutations() -> None:
    assert MUTATION_EVENTS == {
        "save_content": "content.saved",
        "delete_content": "content.deleted",
        "save_model": "model.saved",
        "merge_branch": "branch.merged",
        "reject_branch": "branch.rejected",
    }


def test_g090_what_changed_adds_up_in_order() -> None:
    first = AffectedResources(
        models=("faq",), locales=("en",), branches_changed=True, branch="cr/content/faq/en/1-abcd"
    )
    second = AffectedResources(models=("docs", "faq"), locales=("tr",), snapshot_changed=True)
    assert first.merge(second).to_wire() == {
        "models": ["faq", "docs"],
        "locales": ["en", "tr"],
        "snapshotChanged": True,
        "branchesChanged": True,
        "branch": "cr/content/faq/en/1-abcd",
    }
    assert first.merge(AffectedResources(branch="cr/b")).branch == "cr/b"


@pytest.mark.parametrize(
    ("tool", "arguments", "models", "locales", "snapshot", "branches"),
    [
        ("save_content", {"model": "faq", "locale": "en"}, ["faq"], ["en"], False, True),
        ("copy_locale", {"model": "faq", "from": "en", "to": "tr"}, ["faq"], ["tr"], False, True),
        ("save_model", {"id": "x"}, [], [], True, True),
        ("delete_model", {"model": "x"}, ["x"], [], True, True),
        ("merge_branch", {"branch": "cr/a"}, [], [], True, True),
        ("reject_branch", {"branch": "cr/a"}, [], [], False, True),
        ("brain_query", {"model": "faq"}, [], [], False, False),
        ("vocabulary", {"action": "read"}, [], [], False, False),
        ("vocabulary", {"action": "update", "terms": {}}, [], [], False, True),
    ],
)
def test_g092_to_g095_what_a_call_changes(
    tool: str, arguments: dict[str, Any], models: list[str], locales: list[str], snapshot: bool, branches: bool
) -> None:
    expected = {"models": models, "locales": locales, "snapshotChanged": snapshot, "branchesChanged": branches}
    assert list_affected(tool, arguments).to_wire() == expected


def test_reads_change_nothing() -> None:
    reads = [name for name, rule in TOOL_RULES.items() if rule.is_read]
    assert [name for name in reads if list_affected(name, {"model": "a", "locale": "b"}) != AffectedResources()] == []
