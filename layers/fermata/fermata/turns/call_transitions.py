"""Compute what follows when a call of a round is answered. Pure: every handler and invocation does the same."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.domain.events import Event, ToolRequestEvent, ToolResultEvent
from fermata.domain.json_shortening import shorten_value
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.pipeline import add_ignored_members
from fermata.turns.approvals.settle_call import add_approver_note
from fermata.turns.pause import Pause, build_request_id
from fermata.turns.round_call import CallState, RoundCall

MAX_OUTPUTS_PER_COMMIT = 50
"""Each output is a row of its transaction, which DynamoDB limits to 100 writes and 4 MB."""

MAX_SHOWN_OUTPUT_CHARS = 16_000
"""Of an output, as JSON, that the log keeps for a client which shows it."""

MAX_INPUT_SUMMARY_CHARS = 160
"""Characters of an edit's input that the journal shows."""


@value_dataclass(frozen=True)
class Transition:
    """The new pause, the events that announce the change, and the outputs that become message rows."""

    pause: Pause
    events: tuple[Event, ...] = ()
    outputs: tuple[tuple[RoundCall, ToolOutput], ...] = ()

    @property
    def is_waiting_for_browser(self) -> bool:
        return self.pause.requested_call is not None

    def with_token(self, token: str, epoch: str) -> "Transition":
        return replace(self, pause=self.pause.with_token(token, epoch))

    @property
    def deadline(self) -> float:
        """Epoch seconds until which the pause waits for the editor or a person; 0 when it waits for neither.

        Of a sub-agent nobody is told a deadline: it usually answers soon.
        """
        call = self.pause.next_call
        return call.waits_until if call and not call.has_running_child else 0


def apply_outputs(
    pause: Pause,
    outputs: Mapping[str, tuple[ToolOutput, str]],
    *,
    now: float,
    nonce: str,
    compared_calls: Collection[str] = (),
    max_outputs: int = MAX_OUTPUTS_PER_COMMIT,
) -> Transition:
    """Answer calls in the model's order, up to the first one that has to wait.

    Sub-agents work at the same time, so that those behind one that works may be answered before it. A call whose output
    is known in advance is answered when it is reached. The next browser call is requested; only one request is open at
    a time, and its input is in the log only from then on, so that the pause stays small. A server call, and everything
    that exceeds one transaction, is left to the round function.

    Args:
        pause: The pause as it is stored.
        outputs: By effect key, the output of a call and the hash of the posted result.
        now: Epoch seconds; deadlines count from it.
        nonce: Makes the id of a new request unguessable.
    """
    transition = Transition(pause.model_copy(update={"version": pause.version + 1}))
    is_behind_child = False
    for call in pause.calls:
        if call.is_done:
            continue
        if is_behind_child and call.runner in ("browser", "server"):
            return transition
        if len(transition.outputs) == max_outputs:
            return transition
        output = outputs.get(call.effect_key)
        if output is None and call.runner == "settled" and call.known_output is not None:
            output = (call.known_output, call.answer_hash)
        if output is not None:
            told, answer_hash = output
            transition = _answer_call(
                transition, call, add_approver_note(add_ignored_members(told, call.ignored_members), call), answer_hash
            )
        elif call.has_running_child:
            is_behind_child = True
        elif call.runner == "browser" and call.state == "waiting" and _may_request(call, compared_calls):
            return _request_call(transition, call, now, nonce)
        else:
            return transition
    return transition


def _may_request(call: RoundCall, compared_calls: Collection[str]) -> bool:
    return call.approval is None or call.effect_key in compared_calls


def expire_request(pause: Pause, error: str) -> Transition:
    """Fail the open request with `error`; later answers to it are refused.

    The browser calls behind it are not requested any more. Each fails when it is reached.
    """
    failure = ToolOutput.failure(error)
    transition = Transition(pause.model_copy(update={"version": pause.version + 1}))
    for call in pause.calls:
        if call.state == "requested":
            transition = _answer_call(transition, call, failure, "", state="expired")
        elif call.state == "waiting" and call.runner == "browser":
            settled = call.model_copy(update={"runner": "settled", "known_output": failure, "input": None})
            transition = replace(transition, pause=transition.pause.with_call(settled))
    return transition


def close_calls(pause: Pause, error: str) -> Transition:
    """Give every open call a result, so that no client shows it as pending (decision 0007).

    A result that a remote tool has sent early is the call's result, because it was acknowledged. Other calls fail with
    `error`. A remote tool that has not sent its result is too late from now on (decision 0321).
    """
    transition = Transition(pause.model_copy(update={"version": pause.version + 1}))
    for call in pause.calls:
        if call.has_early_result and call.known_output and len(transition.outputs) < MAX_OUTPUTS_PER_COMMIT:
            told = add_approver_note(add_ignored_members(call.known_output, call.ignored_members), call)
            transition = _answer_call(transition, call, told, call.answer_hash)
        elif not call.is_done:
            transition = _close_call(transition, call, error)
    return transition


def _close_call(transition: Transition, call: RoundCall, error: str) -> Transition:
    event = ToolResultEvent(tool_call_id=call.tool_call_id, tool_name=call.tool_name, ok=False, error=error)
    closed = call.model_copy(update={"state": "expired", "input": None}) if call.runner == "server" else call
    return replace(transition, pause=transition.pause.with_call(closed), events=(*transition.events, event))


def _answer_call(
    transition: Transition, call: RoundCall, output: ToolOutput, answer_hash: str, state: CallState = "answered"
) -> Transition:
    shown = output.data if output.whole_data is None else output.whole_data
    emptied = {"known_output": None, "input": None, "request_revision": "", "input_summary": ""}
    done = call.model_copy(update={"state": state, "answer_hash": answer_hash, **emptied})
    event = ToolResultEvent(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        ok=output.ok,
        error=output.error,
        conflict=output.conflict,
        execution=output.execution,
        output=shorten_value(shown, MAX_SHOWN_OUTPUT_CHARS) if transition.pause.keeps_outputs else None,
    )
    return Transition(
        transition.pause.with_call(done), (*transition.events, event), (*transition.outputs, (call, output))
    )


def _request_call(transition: Transition, call: RoundCall, now: float, nonce: str) -> Transition:
    pause = transition.pause
    request_id = build_request_id(pause.round, pause.calls.index(call), nonce)
    deadline = min(now + call.wait_seconds, pause.deadline_limit)
    requested = call.model_copy(
        update={
            "state": "requested",
            "request_revision": pause.planned_on_revision,
            "input_summary": _summarize_input(call.input) if call.is_edit else "",
            "request_id": request_id,
            "deadline": deadline,
            "input": None,
        }
    )
    event = ToolRequestEvent(
        request_id=request_id,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        input=call.input,
        effect_key=call.effect_key,
        deadline=iso_from_epoch(deadline),
        revision=pause.planned_on_revision or None,
        undoes=pause.undo_target.effect_key if pause.undo_target else None,
    )
    return replace(transition, pause=pause.with_call(requested), events=(*transition.events, event))


def _summarize_input(tool_input: Any) -> str:
    text = json.dumps(tool_input, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_INPUT_SUMMARY_CHARS else text[:MAX_INPUT_SUMMARY_CHARS] + "…"
