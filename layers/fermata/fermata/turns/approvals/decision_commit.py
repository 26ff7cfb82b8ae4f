"""Build the transaction that stores decisions: calls that go on, events, the list of approvals, and the trail."""

from collections.abc import Mapping, Sequence
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Update, Write
from fermata.aws.resources import Resources
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.approvals.approval_record import build_decision_update
from fermata.turns.approvals.decision_trail import TrailHead, build_known_tools_key, build_trail_writes
from fermata.turns.approvals.settle_call import Decision, build_decided_event, iter_closed_calls, settle_call
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import RoundCommit

MAX_OUTPUTS_BESIDE_DECISIONS = 25
"""As many decisions as a round may have take two rows each of the 100 of a transaction, and each output takes one."""
_KNOWN_TOOL_PREFIX = "tool:"


@value_dataclass(frozen=True)
class CallDecision:
    """A decision and the call that it is about."""

    call: RoundCall
    decision: Decision


def build_decision_commit(
    resources: Resources, pause: Pause, decisions: Sequence[CallDecision], head: TrailHead
) -> RoundCommit:
    """Return the commit of decisions about calls of one round.

    Calls whose approval ends because of another decision of the same round are among its events and rows.

    Args:
        resources: The clock and the names of the tables.
        pause: The round's pause as it is stored.
        decisions: At least one. Approved calls were just compared with their tools.
        head: The newest entry of the tenant's trail, as it was read.
    """
    settled = pause
    by_call: dict[str, Decision] = {}
    for item in decisions:
        settled = settle_call(settled, item.call, item.decision)
        by_call[item.call.effect_key] = item.decision
    cause = decisions[0].decision
    closed = [CallDecision(call, by_call.get(call.effect_key, cause)) for call in iter_closed_calls(pause, settled)]
    approved = [item.call.effect_key for item in decisions if item.decision.is_approved]
    transition = apply_outputs(
        settled,
        {},
        now=resources.clock.time(),
        nonce=new_id(12),
        compared_calls=approved,
        max_outputs=MAX_OUTPUTS_BESIDE_DECISIONS,
    )
    writes = _build_writes(resources, pause, closed, head)
    events = tuple(build_decided_event(item.call, item.decision) for item in closed)
    return RoundCommit.for_pause(pause, transition, first_events=events, build_extra_writes=lambda _entry: writes)


def _build_writes(
    resources: Resources, pause: Pause, closed: Sequence[CallDecision], head: TrailHead
) -> tuple[Write, ...]:
    now = resources.clock.now_iso()
    entries = tuple((_build_facts(pause, item, now), _build_personal(pause, item.decision)) for item in closed)
    return (
        *(_build_row_update(resources, pause, item, now) for item in closed),
        *(update for item in closed for update in _build_known_tool_updates(resources, pause, item)),
        *build_trail_writes(resources, pause.tenant, head, entries),
    )


def _build_row_update(resources: Resources, pause: Pause, item: CallDecision, now: str) -> Update:
    approval, decision = item.call.approval, item.decision
    assert approval is not None, item.call.effect_key
    values = {
        "decided_at": now,
        "decided_by": decision.decided_by,
        "decision_reason": decision.reason,
        "decided_input_hash": decision.input_hash,
    }
    return build_decision_update(resources, pause.tenant, approval.id, decision.outcome, values)


def _build_facts(pause: Pause, item: CallDecision, now: str) -> Mapping[str, Any]:
    approval, decision = item.call.approval, item.decision
    assert approval is not None, item.call.effect_key
    return {
        "kind": "toolApproval",
        "at": now,
        "approval": approval.id,
        "turn": pause.turn,
        "round": pause.round,
        "tool": approval.tool,
        "toolDigest": approval.tool_digest,
        "agent": approval.agent,
        "inputHash": approval.input_hash,
        "decidedInputHash": decision.input_hash or approval.input_hash,
        "reasons": list(approval.reasons),
        "outcome": decision.outcome,
    }


def _build_personal(pause: Pause, decision: Decision) -> Mapping[str, str]:
    values = {"askedFor": pause.user, "decidedBy": decision.decided_by, "reason": decision.reason}
    return {name: value for name, value in values.items() if value}


def _build_known_tool_updates(resources: Resources, pause: Pause, item: CallDecision) -> tuple[Update, ...]:
    """Remember an approved tool, where the policy asks for new ones, so that later turns need not ask."""
    approval = item.call.approval
    assert approval is not None, item.call.effect_key
    if not item.decision.is_approved or ApprovalReason.NEW_TOOL not in approval.reasons:
        return ()
    return (
        Update(
            *build_known_tools_key(resources, pause.tenant),
            "SET #tool = :digest",
            {":digest": approval.tool_digest},
            names={"#tool": f"{_KNOWN_TOOL_PREFIX}{approval.tool}"},
            condition="",
        ),
    )


def read_known_tools(item: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the digests of the tools that a tenant has approved, by canonical name, from their row."""
    members = (item or {}).items()
    return {
        name.removeprefix(_KNOWN_TOOL_PREFIX): value for name, value in members if name.startswith(_KNOWN_TOOL_PREFIX)
    }
