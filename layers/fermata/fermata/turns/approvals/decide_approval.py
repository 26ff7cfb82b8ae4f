"""Decide about a tool call that waits for a person: once, and only about the call that was shown."""

from typing import Any

from fermata.agents.agent import Agent
from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound, ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.pipeline import parse_tool_input, split_own_members
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.tools.tool import Tool
from fermata.tools.toolset import Toolset
from fermata.turns.answer.resume_turn import resume_turn
from fermata.turns.approvals.approval_answer import (
    APPROVAL_NOT_FOUND_MESSAGE,
    CLOSED_MESSAGES,
    ApprovalAnswer,
    ApprovalClosed,
    require_approver,
)
from fermata.turns.approvals.approval_record import (
    ApprovalPlace,
    ApprovalRecord,
    approval_from_item,
    build_approval_key,
    parse_approval_id,
)
from fermata.turns.approvals.call_input_hash import hash_call_input
from fermata.turns.approvals.decide_held_plan import decide_held_plan
from fermata.turns.approvals.decision_commit import CallDecision, build_decision_commit
from fermata.turns.approvals.decision_trail import TrailHead, build_head_key
from fermata.turns.approvals.settle_call import Decision
from fermata.turns.pause import Pause, build_pause_key, pause_from_item
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import PauseChanged, write_round_commit
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.turn_log import TurnEnded, TurnLog
from fermata.turns.turn_toolset import open_turn_toolset

MAX_DECISION_ATTEMPTS = 30
_ATTEMPT_WAIT_SECONDS = 0.05


@value_dataclass(frozen=True)
class _StoredApproval:
    """The rows that a decision depends on, as they were read at once."""

    record: ApprovalRecord
    turn: Turn
    pause: Pause
    head: TrailHead
    agent: Agent
    toolset: Toolset


def decide_approval(resources: Resources, caller: Caller, approval_id: str, answer: ApprovalAnswer) -> ApprovalRecord:
    """Store a decision and let the turn go on. The same decision of the same person again changes nothing.

    Args:
        resources: Tables, workflow and clock.
        caller: A user with the capability `ai.tools.approve`.
        approval_id: The approval's id, as the client sent it.
        answer: The decision.

    Returns:
        The approval with what was decided.

    Raises:
        NotFound: There is no such approval in the caller's workspace and scopes.
        Forbidden: The policy lets another user than the one who started the turn decide.
        InvalidRequest: The changed input does not fit the tool.
        ApprovalClosed: It was decided otherwise, has expired, its turn has ended, its tool or agent was changed, or
            the approver has seen another input.
        ServiceUnavailable: Too many writers at once, or the workflow cannot be reached. Repeat the call.
    """
    for attempt in range(MAX_DECISION_ATTEMPTS):
        stored = _read_approval(resources, caller, approval_id)
        record = stored.record
        require_approver(resources, stored.agent, stored.turn, caller)
        if record.plan_id:
            return decide_held_plan(resources, caller, record, answer)
        if record.state != "waiting":
            return _repeat_decision(resources, stored, caller, answer)
        try:
            return _commit_decision(resources, stored, caller, answer)
        except (PauseChanged, TurnEnded):
            resources.clock.sleep(_ATTEMPT_WAIT_SECONDS * min(attempt, 5))
    raise ServiceUnavailable("Many decisions are made at once. Send the same decision again.", retry_after=1)


def _read_approval(resources: Resources, caller: Caller, approval_id: str) -> _StoredApproval:
    place = parse_approval_id(approval_id)
    if place is None:
        raise NotFound(APPROVAL_NOT_FOUND_MESSAGE)
    keys = _list_keys(resources, caller.tenant, place)
    items = resources.tables.batch_get_by_keys(keys)
    turn_item, pause_item, approval_item, head_item = (items.get(key) for key in keys)
    turn = turn_from_item(turn_item, resources.clock.time())
    record = _parse_record(approval_item)
    if turn is None or pause_item is None or record is None or record.id != approval_id:
        raise NotFound(APPROVAL_NOT_FOUND_MESSAGE)
    if not caller.allows_scope(turn.scope):
        raise NotFound(APPROVAL_NOT_FOUND_MESSAGE)
    pause, head = pause_from_item(resources, pause_item), TrailHead.from_item(head_item)
    agent = open_turn_agent(resources, turn)
    return _StoredApproval(record, turn, pause, head, agent, open_turn_toolset(resources, turn))


def _list_keys(resources: Resources, tenant: str, place: ApprovalPlace) -> tuple[ItemKey, ...]:
    table, pk = resources.settings.bridges_table, build_turn_pk(tenant, place.turn)
    return (
        ItemKey(table, pk, "turn"),
        ItemKey(table, pk, build_pause_key(place.round)),
        build_approval_key(resources, tenant, place),
        build_head_key(resources, tenant),
    )


def _parse_record(item: Item | None) -> ApprovalRecord | None:
    return approval_from_item(item) if item else None


def _repeat_decision(
    resources: Resources, stored: _StoredApproval, caller: Caller, answer: ApprovalAnswer
) -> ApprovalRecord:
    """Resume the turn again if this is the stored decision, because the first request may have failed before it did."""
    record = stored.record
    call = stored.pause.calls[record.place.call_index]
    if call.state == "approval" and record.state != "cancelled":
        raise PauseChanged  # the pause was read before the row that it was decided with
    is_same = (
        record.decided_by == caller.user
        and record.state == ("approved" if answer.is_approved else "denied")
        and record.decision_reason == answer.reason
        and record.decided_input_hash == _hash_changed_input(stored, answer)
    )
    if not is_same:
        raise ApprovalClosed(CLOSED_MESSAGES[record.state])
    resume_turn(resources, stored.pause)
    return record


def _hash_changed_input(stored: _StoredApproval, answer: ApprovalAnswer) -> str:
    tool = _find_tool(stored)
    if answer.input is None or tool is None:
        return ""
    return hash_call_input(tool.name, _parse_changed_input(stored, tool, answer.input))


def _commit_decision(
    resources: Resources, stored: _StoredApproval, caller: Caller, answer: ApprovalAnswer
) -> ApprovalRecord:
    call = _find_waiting_call(stored)
    if call.approval is None or stored.record.deadline <= resources.clock.time():
        raise ApprovalClosed(CLOSED_MESSAGES["expired"])
    if answer.input_hash and answer.input_hash != call.approval.input_hash:
        raise ApprovalClosed("The call has another input than the one that was decided about. Read it again.")
    is_stale = answer.is_approved and not _is_current(stored, call)
    decision = Decision("stale") if is_stale else _build_decision(stored, call, caller, answer)
    commit = build_decision_commit(resources, stored.pause, [CallDecision(call, decision)], stored.head)
    pause = stored.pause
    log = TurnLog(resources, pause.partition, pause.last_entry_number, pause.next_number, pause.turn_state)
    committed = write_round_commit(resources, log, commit)
    _log_decision(stored, decision)
    if committed.pause:
        resume_turn(resources, committed.pause)
    if is_stale:
        raise ApprovalClosed(CLOSED_MESSAGES["stale"])
    return stored.record.model_copy(
        update={
            "state": decision.outcome,
            "decided_at": resources.clock.now_iso(),
            "decided_by": decision.decided_by,
            "decision_reason": decision.reason,
            "decided_input_hash": decision.input_hash,
        }
    )


def _find_waiting_call(stored: _StoredApproval) -> RoundCall:
    call = stored.pause.calls[stored.record.place.call_index]
    if call.state != "approval" or call.approval is None or call.approval.id != stored.record.id:
        raise PauseChanged  # the row was read before the pause that has decided it
    return call


def _is_current(stored: _StoredApproval, call: RoundCall) -> bool:
    """Return whether the tool and the agent are still those for which the approval was requested."""
    assert call.approval is not None, call.effect_key
    tool = _find_tool(stored)
    approved = (call.approval.agent, call.approval.tool_digest)
    return tool is not None and (stored.agent.reference, tool.digest) == approved


def _find_tool(stored: _StoredApproval) -> Tool | None:
    return stored.toolset.find_tool(stored.record.tool_name)


def _build_decision(stored: _StoredApproval, call: RoundCall, caller: Caller, answer: ApprovalAnswer) -> Decision:
    if not answer.is_approved:
        return Decision("denied", answer.reason, decided_by=caller.user)
    tool = _find_tool(stored)
    if answer.input is None or tool is None:
        return Decision("approved", answer.reason, decided_by=caller.user)
    arguments = _parse_changed_input(stored, tool, answer.input)
    _, own_members = split_own_members(tool, call.input)
    return Decision(
        "approved",
        answer.reason,
        changed_input={**arguments, **own_members},
        shown_input=arguments,
        input_hash=hash_call_input(tool.name, arguments),
        decided_by=caller.user,
    )


def _parse_changed_input(stored: _StoredApproval, tool: Tool, changed: dict[str, Any]) -> dict[str, Any]:
    record = stored.record
    block = ToolCallBlock(tool_call_id=record.tool_call_id, tool_name=record.tool_name, input=changed)
    try:
        arguments, _ = parse_tool_input(tool, block)
    except InvalidToolInput as error:
        raise InvalidRequest(str(error)) from error
    return arguments


def _log_decision(stored: _StoredApproval, decision: Decision) -> None:
    observability.log_audit_event(
        "ai.approval.decided",
        tenant=stored.turn.tenant,
        user=decision.decided_by,
        turn=stored.turn.id,
        scope=stored.turn.scope,
        approval=stored.record.id,
        tool=stored.record.tool_name,
        outcome=decision.outcome,
    )
