"""Every write of the package has a condition, or is one of those that decision 0173 lists without one."""

import ast
from collections.abc import Iterator
from pathlib import Path

from fermata import turns

PACKAGE = Path(turns.__file__).parent.parent
CONDITIONED = {"Put": ("if_absent", "condition"), "Delete": ("condition",), "Update": ("condition",)}
POSITIONAL_CONDITION = {"Put": 4, "Delete": 4, "Update": 7}
"""How many positional arguments a write has that gives its condition by its place, or unpacks it."""
KEY_MEMBERS = 3
"""What a key has that is unpacked in the first place: table, partition and sort key."""
CLIENT_WRITES = ("batch_delete", "put_object", "delete_objects")

UNCONDITIONAL: dict[str, str] = {
    "content/change_sets/change_set_store.py:delete_changed_documents": "deletes what a closed set of changes has left",
    "content/search/search_index.py:_store_entry": "stands beside the row that says where the entry is",
    "content/forms/submission_store.py:delete_submissions_of_model": "deletes what a model that is gone leaves",
    "content/space_members.py:delete_member_list": "deletes a list that is to be gone, the row that says so last",
    "turns/edit_journal.py:build_mark_put": "stands beside a log entry",
    "turns/approvals/approval_record.py:_build_cancellation": "stands beside the last log entry of its turn",
    "turns/approvals/confirmations.py:_keep": "stands beside the log entry of its round",
    "turns/approvals/decision_commit.py:_build_known_tool_updates": "stands beside the log entry of its decision",
    "turns/end/listed_turn.py:build_ended_turn_update": "stands beside a log entry",
    "usage/budgets/holds.py:_build_account_writes": "stands beside a log entry, and names the hold",
    "usage/budgets/budget_accounts.py:_build_spending_update": "stands beside a log entry, or releases what is there",
    "usage/rollups/rebuild.py:_delete_edition": "deletes what is never written again",
    "conversations/purge.py:_purge_conversation": "deletes what is never written again",
    "wire/auth/tenant_store.py:_replace_tenant": "origins stand beside the tenant's version",
    "wire/auth/tenant_store.py:_build_origin_put": "stands beside the tenant's version",
    "credentials/credential_store.py:update_credential": "labels stand beside the credential's revision",
    "credentials/credential_store.py:delete_credential": "labels and models stand beside the credential's revision",
    "aws/blob_store.py:put_compressed_json": "its key is the digest of its content",
    "aws/blob_store.py:put_bytes": "its key is the digest of its content",
    "aws/blob_store.py:_delete": "deletes what is never written again",
    "aws/blob_store.py:put_file": "its key is of one export or version of an agent, and its content the same each time",
    "privacy/erase_content.py:erase_partition": "deletes what an erased person or tenant may not leave",
    "privacy/erase_space.py:erase_space": "deletes what an erased space may not leave",
    "privacy/erase_tenant.py:_erase_registration": "deletes what an erased tenant may not leave",
    "privacy/erase_tenant.py:_erase_row": "deletes what an erased tenant may not leave",
    "privacy/privacy_job.py:close_privacy_job": "deletes the entry of a job that is done, whose id is never used again",
    "wire/auth/tenant_erasure_mark.py:check_tenant_is_not_erased": "deletes a mark of a form that is not written again",
    "wire/auth/tenant_erasure_mark.py:build_erasure_mark_delete": "its key is of one erasure, and never used again",
    "conversations/message_store.py:build_undo_put": "stands beside the first log entry of its turn",
    "billing/queue_usage_reports.py:_store_position": "whichever stays, the next run looks at all of them",
    "billing/deliver_usage_report.py:_close_report": "deletes a report that was taken, whose id is never used again",
    "limits/leases.py:build_lease_removal": "stands beside the last log entry of its turn",
    "turns/webhooks/deliver_entry.py:deliver_queued_entry": "deletes a mark of a log entry, whose number is used once",
    "remote_tools/stored_tools.py:store_tool": "deletes a former version of a tool, whose id is never used again",
    "plans/drafts/publishing.py:_write_pages": "its key is of one edition, and its content the same each time",
    "plans/drafts/publishing.py:_flip_head": "stands beside the site's number",
    "plans/drafts/publishing.py:_delete_dropped_editions": "deletes an edition that is not kept",
    "plans/drafts/publishing.py:delete_published": "deletes what no head names, since the head went first",
    "plans/drafts/draft_store.py:_write_change": "deletes beside the draft's version what no version leads to",
    "plans/drafts/draft_store.py:_build_page_writes": "stands beside the draft's version",
    "plans/drafts/draft_store.py:_build_history_put": "stands beside the draft's version",
    "wire/auth/api_key_store.py:_delete_long_revoked": "deletes a revoked key, whose id is never used again",
    "wire/auth/mcp_connector_store.py:_delete_long_ended": "deletes a connector whose id is never used again",
}
"""Functions that build a write without a condition, and why it may land again."""


def find_unconditional_writes(source: str) -> Iterator[str]:
    """Yield the innermost function of each write that has no condition."""
    for function, call in _iter_calls(ast.parse(source), ""):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name in CLIENT_WRITES or (name in CONDITIONED and not _has_condition(name, call)):
            yield function


def _iter_calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield function, child
        yield from _iter_calls(child, child.name if isinstance(child, ast.FunctionDef) else function)


def _has_condition(name: str, call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    conditions = [given[member] for member in CONDITIONED[name] if member in given]
    if any(not (isinstance(value, ast.Constant) and not value.value) for value in conditions):
        return True
    # The default of an Update, that the item exists, does not say which state it replaces.
    unpacked = KEY_MEMBERS - 1 if call.args and isinstance(call.args[0], ast.Starred) else 0
    return len(call.args) + unpacked >= POSITIONAL_CONDITION[name]


def test_every_write_has_a_condition_or_is_listed() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name not in ("dynamodb_items_and_writes.py", "dynamodb_client.py"):
            module = path.relative_to(PACKAGE).as_posix()
            found |= {f"{module}:{function}" for function in find_unconditional_writes(path.read_text())}
    assert sorted(found) == sorted(UNCONDITIONAL)


def test_writes_without_a_condition_are_found() -> None:
    source = """
def create(table, item):
    return Put(table, item)
def change(table):
    return Update(table, "pk", "sk", "SET a = :a"), Update(table, "pk", "sk", "SET a = :a", condition="a = :b")
def settle(table):
    return Update(table, "pk", "sk", "SET a = :a", condition="")
def create_once(table, item):
    return Put(table, item, if_absent=True), Put(table, item, condition=why)
def remove(table):
    return Delete(table, "pk", "sk"), Delete(table, "pk", "sk", *condition)
"""
    assert list(find_unconditional_writes(source)) == ["create", "change", "settle", "remove"]
