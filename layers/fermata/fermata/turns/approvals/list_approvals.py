"""List the calls of a tenant that wait for a decision, and show one: to a reloaded page or an inbox."""

import json
import re
from collections.abc import Sequence
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound
from fermata.domain.page_cursor import decode_page_cursor, encode_page_cursor
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.pipeline import split_own_members
from fermata.turns.approvals.approval_answer import APPROVAL_NOT_FOUND_MESSAGE
from fermata.turns.approvals.approval_record import (
    ApprovalRecord,
    approval_from_item,
    build_approval_key,
    parse_approval_id,
    waiting_approvals_partition,
)
from fermata.turns.pause import build_pause_key, pause_from_item
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_toolset import open_turn_toolset

MAX_APPROVALS_PER_PAGE = 100
"""One query of the index, and one BatchGetItem, which reads 100 items at most."""
_CURSOR_PATTERN = re.compile(r"([0-9TZ:.\-]{1,40}) ([\w-]{1,60}) (a#\d{6}#\d{4})", re.ASCII)


@value_dataclass(frozen=True)
class ApprovalPage:
    """A page of waiting approvals, the oldest first. `next_cursor` is empty on the last one."""

    approvals: tuple[ApprovalRecord, ...]
    next_cursor: str = ""


def list_waiting_approvals(resources: Resources, caller: Caller, cursor: str, limit: int) -> ApprovalPage:
    """Return a page of the approvals that wait in the caller's workspace, in the scopes that the caller may act in.

    Args:
        resources: The tables.
        caller: A user with the capability `ai.tools.approve`.
        cursor: `next_cursor` of the page before; empty for the first page.
        limit: The greatest number of approvals, at most MAX_APPROVALS_PER_PAGE.

    Raises:
        InvalidRequest: The cursor is malformed.
    """
    partition = waiting_approvals_partition(caller.tenant)
    limit = min(limit, MAX_APPROVALS_PER_PAGE)
    table = resources.settings.bridges_table
    start_after = _decode_cursor(caller.tenant, partition, cursor) if cursor else None
    keys = resources.tables.query_index(table, "open", ("open", partition), limit=limit, start_after=start_after)
    records = [
        record
        for record in _read_records(resources, [(row["pk"], row["sk"]) for row in keys])
        if record.deadline > resources.clock.time() and caller.allows_scope(record.scope)
    ]
    return ApprovalPage(tuple(records), _encode_cursor(keys[-1]) if len(keys) == limit else "")


def _read_records(resources: Resources, keys: Sequence[tuple[str, str]]) -> list[ApprovalRecord]:
    """Return the rows that still wait, in the order of their keys: the index may be a moment behind."""
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys) if keys else {}
    records = [approval_from_item(items[key]) for key in keys if key in items]
    return [record for record in records if record.state == "waiting"]


def get_approval(resources: Resources, caller: Caller, approval_id: str) -> dict[str, Any]:
    """Return the view of an approval, while it waits with the whole input of its call.

    Args:
        resources: The tables.
        caller: A user with the capability `ai.tools.approve`.
        approval_id: The approval's id, as the client sent it.

    Raises:
        NotFound: There is no such approval in the caller's workspace and scopes.
    """
    place = parse_approval_id(approval_id)
    if place is None:
        raise NotFound(APPROVAL_NOT_FOUND_MESSAGE)
    row_key = build_approval_key(resources, caller.tenant, place)
    pause_key = ItemKey(row_key.table, row_key.pk, build_pause_key(place.round))
    turn_key = ItemKey(row_key.table, row_key.pk, "turn")
    items = resources.tables.batch_get_by_keys((row_key, pause_key, turn_key))
    row = items.get(row_key)
    record = approval_from_item(row) if row and row["ttl"] > resources.clock.time() else None
    if record is None or record.id != approval_id or not caller.allows_scope(record.scope):
        raise NotFound(APPROVAL_NOT_FOUND_MESSAGE)
    if record.plan_id:
        return build_approval_view(record) | _read_held_plan(resources, record)
    turn = turn_from_item(items.get(turn_key), resources.clock.time())
    return build_approval_view(record) | _read_whole_input(resources, record, turn, items.get(pause_key))


def _read_held_plan(resources: Resources, record: ApprovalRecord) -> dict[str, Any]:
    from fermata.plans.drafts.draft_rows import DraftLocation  # imported here because few approvals are of plans
    from fermata.plans.drafts.pending_plan import load_pending_plan
    from fermata.turns.approvals.held_plan_listing import build_plan_input

    pending = load_pending_plan(resources, DraftLocation(record.tenant, record.conversation))
    if record.state != "waiting":
        return {}
    if pending is None or pending.id != record.plan_id:
        return {"state": "expired"}
    outcome = pending.outcome.to_wire()
    shown = ("changes", "destructiveReasons", "normalizedFrom")
    plan = {name: outcome[name] for name in shown if outcome.get(name)}
    return {"input": build_plan_input(pending.outcome), "plan": plan}


def _read_whole_input(
    resources: Resources, record: ApprovalRecord, turn: Turn | None, pause_item: Item | None
) -> dict[str, Any]:
    if record.state != "waiting" or turn is None or pause_item is None:
        return {}
    call = pause_from_item(resources, pause_item).calls[record.place.call_index]
    tool = open_turn_toolset(resources, turn).find_tool(record.tool_name)
    if call.state != "approval":
        return {}
    # A remote tool is none of the agent's. It sends the model's arguments and nothing else.
    return {"input": split_own_members(tool, call.input)[0] if tool else call.input}


def build_approval_view(record: ApprovalRecord) -> dict[str, Any]:
    """Return an approval as the API shows it. The list shows a shortened input."""
    view: dict[str, Any] = {
        "approvalId": record.id,
        "state": record.state,
        "bridgeId": record.turn,
        "conversationId": record.conversation,
        "userId": record.user,
        "scope": record.scope,
        "agent": record.agent,
        "toolCallId": record.tool_call_id,
        "toolName": record.tool_name,
        "description": record.description,
        "risk": record.risk,
        "capability": record.access,
        "reasons": list(record.reasons),
        "input": json.loads(record.input_preview),
        "inputHash": record.input_hash,
        "requestedAt": record.requested_at,
        "deadline": iso_from_epoch(record.deadline),
    }
    if record.plan_id:
        view["pendingPlanId"] = record.plan_id
    if record.decided_at:
        view["decidedAt"] = record.decided_at
        view |= {"decidedBy": record.decided_by} if record.decided_by else {}
        view |= {"reason": record.decision_reason} if record.decision_reason else {}
        view |= {"decidedInputHash": record.decided_input_hash} if record.decided_input_hash else {}
    return view


def _encode_cursor(last: Item) -> str:
    return encode_page_cursor(last["openSince"], last["pk"].rpartition("#")[2], last["sk"])


def _decode_cursor(tenant: str, partition: str, cursor: str) -> Item:
    """Return the index keys of a cursor. The partition is always the caller's own (decision 0067)."""
    since, turn, sort_key = decode_page_cursor(cursor, _CURSOR_PATTERN)
    return {"open": partition, "openSince": since, "pk": build_turn_pk(tenant, turn), "sk": sort_key}
