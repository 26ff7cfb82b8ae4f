"""Compute what a decision makes of a call that waits for it. Pure: it changes the pause and announces the change."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.events import ApprovalDecidedEvent, ApprovalOutcome
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall

_DENIED_TEXTS: Mapping[ApprovalOutcome, str] = {
    "denied": "A person has denied this call, so nothing was done.",
    "expired": "Nobody has approved this call in time, so nothing was done.",
    "stale": "The tool was changed while the call waited for a person, so nothing was done.",
}
_DO_NOT_REPEAT = " Do not call it again with the same input; go on without it, or ask the user."
_CALL_AGAIN = " Call it again if it is still needed."
_TURN_DENIED_TEXT = "This turn was not allowed to go on, because of its cost, so nothing was done."


@value_dataclass(frozen=True)
class Decision:
    """What a person, or the passing of time, has decided about a call.

    Attributes:
        reason: What the person says about it; empty for nothing.
        changed_input: The whole input that the call gets instead, in the form in which it is run.
        shown_input: The same as the approver has written it, for the model and the clients.
        decided_by: The user who has decided; empty if nobody has.
    """

    outcome: ApprovalOutcome
    reason: str = ""
    changed_input: dict[str, Any] | None = None
    shown_input: dict[str, Any] | None = None
    input_hash: str = ""
    decided_by: str = ""

    @property
    def is_approved(self) -> bool:
        return self.outcome == "approved"


def build_denied_output(decision: Decision) -> ToolOutput:
    """Build what the model reads about a call that was not approved."""
    text = _DENIED_TEXTS[decision.outcome]
    end = "" if decision.reason.endswith((".", "!", "?")) else "."
    reason = f" The reason: {decision.reason}{end}" if decision.reason else ""
    advice = _CALL_AGAIN if decision.outcome == "stale" else _DO_NOT_REPEAT
    data = {"success": False, "cancelled": True, "reason": decision.reason}
    return ToolOutput(ok=False, error=f"{text}{reason}{advice}", data=data)


def settle_call(pause: Pause, call: RoundCall, decision: Decision) -> Pause:
    """Return the pause with a decided call: it goes on to its runner, or is answered when it is reached.

    If a turn may not go on because of its cost, no other call of the round runs either.
    """
    if decision.is_approved:
        return pause.with_call(_grant(call, decision))
    settled = pause.with_call(_deny(call, build_denied_output(decision)))
    approval = call.approval
    if approval is None or ApprovalReason.TURN_COST not in approval.reasons:
        return settled
    for other in settled.calls:
        if other.effect_key != call.effect_key and other.state in ("approval", "waiting"):
            settled = settled.with_call(_deny(other, ToolOutput.failure(_TURN_DENIED_TEXT)))
    return settled


def _grant(call: RoundCall, decision: Decision) -> RoundCall:
    assert call.approval is not None, call.effect_key
    granted: dict[str, Any] = {"is_granted": True, "changed_input": decision.shown_input}
    granted |= {"input_hash": decision.input_hash} if decision.input_hash else {}
    changes: dict[str, Any] = {"state": "waiting", "approval": call.approval.model_copy(update=granted)}
    return call.model_copy(
        update=changes if decision.changed_input is None else changes | {"input": decision.changed_input}
    )


def _deny(call: RoundCall, output: ToolOutput) -> RoundCall:
    return call.model_copy(update={"state": "waiting", "runner": "settled", "known_output": output, "input": None})


def build_decided_event(call: RoundCall, decision: Decision) -> ApprovalDecidedEvent:
    """Build the event that tells what became of the approval of a call."""
    approval = call.approval
    assert approval is not None, call.effect_key
    return ApprovalDecidedEvent(
        approval_id=approval.id,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        outcome=decision.outcome,
        approved=decision.is_approved,
        reason=decision.reason or None,
        input=decision.shown_input,
        input_hash=decision.input_hash or approval.input_hash,
        reasons=approval.reasons,
    )


def iter_expired_calls(pause: Pause, now: float) -> Iterator[RoundCall]:
    """Yield the calls about which nobody has decided in time."""
    for call in pause.calls:
        if call.state == "approval" and call.approval and call.approval.deadline <= now:
            yield call


def iter_closed_calls(before: Pause, after: Pause) -> Iterator[RoundCall]:
    """Yield the calls whose approval was open before and is not any more, as they were before."""
    states = {call.effect_key: call.state for call in after.calls}
    for call in before.calls:
        if call.state == "approval" and states[call.effect_key] != "approval":
            yield call


def add_approver_note(output: ToolOutput, call: RoundCall) -> ToolOutput:
    """Tell the model with which input a call was run, if the approver has changed it."""
    changed = call.approval.changed_input if call.approval else None
    if changed is None:
        return output
    if not output.ok:
        return output.model_copy(update={"error": f"{output.error} A person had changed the input of this call."})
    data = output.data if isinstance(output.data, dict) else {} if output.data is None else {"result": output.data}
    return output.model_copy(update={"data": {**data, "inputChangedByApprover": changed}})
