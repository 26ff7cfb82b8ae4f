"""Members and keys may do in a project what their role says. Whatever is missing or unknown is denied."""

from typing import Any

import pytest

from fermata.tools.studio.project_permissions import (
    refuse_for_caller,
    resolve_key_permissions,
    resolve_member_permissions,
)
from fermata.tools.studio.tool_rules import TOOL_RULES

ALL = frozenset(TOOL_RULES)
READS = frozenset(name for name, rule in TOOL_RULES.items() if rule.is_read)
DECISIONS = {"merge_branch", "reject_branch", "approve_submission", "reject_submission"}
EDITS = {"save_content", "delete_content", "copy_locale", "update_status"} | {
    *("upload_media", "update_media", "delete_media", "vocabulary"),
}


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_g033_owners_and_admins_may_use_every_tool(role: str) -> None:
    permissions = resolve_member_permissions(role, None)
    assert (permissions.tools, permissions.allowed_models, permissions.project_role) == (ALL, None, None)


def test_g034_a_member_without_a_row_of_the_project_may_do_nothing() -> None:
    permissions = resolve_member_permissions("member", None)
    assert (permissions.tools, permissions.project_role) == (frozenset(), None)


@pytest.mark.parametrize(
    ("membership", "tools"),
    [
        ({"role": "viewer"}, READS),
        ({"role": "reviewer"}, READS | DECISIONS),
        ({"role": "editor"}, READS | EDITS),
        ({"role": None}, READS),
        ({}, READS),
        ({"role": "superuser"}, READS),
        ({"role": "owner"}, READS),
    ],
)
def test_g035_to_g038_a_role_has_the_tools_of_its_column(membership: dict[str, Any], tools: set[str]) -> None:
    assert resolve_member_permissions("member", membership).tools == tools


def test_an_unknown_role_of_a_workspace_is_that_of_a_member() -> None:
    assert resolve_member_permissions("billing", {"role": "viewer"}).tools == READS


def test_a_restriction_to_models_is_kept_and_one_without_names_denies_all() -> None:
    row = {"role": "editor", "specificModels": True, "allowedModels": ["faq", "docs"]}
    assert resolve_member_permissions("member", row).allowed_models == {"faq", "docs"}
    assert (
        resolve_member_permissions("member", {"role": "editor", "specificModels": True}).allowed_models == frozenset()
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("save_content", {"model": "posts", "data": {}}, "model_access_denied"),
        ("save_content", {"model": "faq", "data": {}}, None),
        ("delete_content", {"model": "posts", "entryIds": ["a"]}, "model_access_denied"),
        ("relation_expand", {"model": "posts", "entryId": "a"}, "model_access_denied"),
        ("list_submissions", {"modelId": "posts"}, "model_access_denied"),
        ("save_model", {"id": "posts"}, "model_access_denied"),
        ("brain_query", {"model": "faq", "locale": "de"}, "locale_not_allowed"),
        ("copy_locale", {"model": "faq", "from": "en", "to": "de"}, "locale_not_allowed"),
        ("brain_query", {"model": "faq", "locale": "tr"}, None),
    ],
)
def test_g040_and_g041_models_and_locales_of_a_key_are_checked_when_a_call_runs(
    tool: str, arguments: dict[str, Any], code: str | None
) -> None:
    key = resolve_key_permissions("admin", allowed_models=frozenset({"faq"}), allowed_locales=frozenset({"en", "tr"}))
    assert refuse_for_caller(tool, arguments, key) == code


def test_g044_a_key_with_the_role_admin_is_a_workspace_admin() -> None:
    key = resolve_key_permissions("admin")
    assert (key.workspace_role, key.project_role, key.tools) == ("admin", None, ALL)
    assert key.merges_in_review


@pytest.mark.parametrize(("role", "tools"), [("viewer", READS), ("editor", READS | EDITS), ("reviewer", READS)])
def test_other_keys_have_the_tools_of_their_role_and_no_decisions(role: str, tools: set[str]) -> None:
    assert resolve_key_permissions(role).tools == tools


def test_the_tools_of_a_key_narrow_its_role_and_never_widen_it() -> None:
    key = resolve_key_permissions("viewer", allowed_tools=frozenset({"get_content", "delete_model"}))
    assert key.tools == {"get_content"}


def test_g047_a_tool_that_was_not_offered_is_refused_when_it_is_called() -> None:
    viewer = resolve_member_permissions("member", {"role": "viewer"})
    assert refuse_for_caller("save_content", {"model": "faq"}, viewer) == "permission_denied"
