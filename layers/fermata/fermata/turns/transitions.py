"""What follows when a call of a round is answered: pure, so that every door and every wake-up does the same."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.settings import TURN_RETENTION_SECONDS
from fermata.domain.events import Event, ToolRequestEvent, ToolResultEvent
from fermata.domain.tools import ToolOutput
from fermata.turns.pause import Pause, RoundCall, build_request_id

MAX_OUTPUTS_PER_COMMIT = 50
"""Results told in one commit: each is a row of its transaction, which takes 100 writes and 4 MB."""

MAX_INPUT_SUMMARY_CHARS = 160
"""Characters of an edit's input that the journal shows."""


@dataclass(frozen=True)
class Transition:
    """The pause as it now is, the events that tell it, and the outputs that became rows (call, output)."""

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
        asked = self.pause.requested_call
        return asked.deadline if asked else 0


def apply_outputs(pause: Pause, outputs: Mapping[str, tuple[ToolOutput, str]], *, now: float, nonce: str) -> Transition:
    """Give the calls named by effect key their (output, answer hash), then go on as far as nobody has to act.

    Calls whose output was known beforehand are answered when their turn comes; the next browser call is requested;
    a server call is left to the round's function. Order is the model's: one request is open at a time. The input of
    a requested call lives in the log from then on, so that the pause stays small. What is more than one transaction
    takes is left to the round's function as well.
    """
    progress = Transition(pause.model_copy(update={"version": pause.version + 1}))
    for call in pause.calls:
        if call.is_done:
            continue
        if len(progress.outputs) == MAX_OUTPUTS_PER_COMMIT:
            return progress
        answer = outputs.get(call.effect_key)
        if answer is None and call.runner == "settled" and call.output is not None:
            answer = (call.output, "")
        if answer is not None:
            progress = _answered(progress, call, *answer)
        elif call.runner == "browser" and call.state == "waiting":
            return _requested(progress, call, now, nonce)
        else:
            return progress
    return progress


def expire_request(pause: Pause, error: str) -> Transition:
    """Nobody answered: the open request fails with `error`, and later answers to it are refused. The browser's calls
    behind it are not even asked for; each fails when its turn comes.
    """
    given_up = ToolOutput.failure(error)
    progress = Transition(pause.model_copy(update={"version": pause.version + 1}))
    for call in pause.calls:
        if call.state == "requested":
            progress = _answered(progress, call, given_up, "", state="expired")
        elif call.state == "waiting" and call.runner == "browser":
            settled = call.model_copy(update={"runner": "settled", "output": given_up, "input": None})
            progress = replace(progress, pause=progress.pause.with_call(settled))
    return progress


def build_closing_events(pause: Pause, error: str) -> tuple[Event, ...]:
    """The failed results that close every call still open on the stream when a turn ends."""
    return tuple(
        ToolResultEvent(tool_call_id=call.tool_call_id, tool_name=call.tool_name, ok=False, error=error)
        for call in pause.calls
        if not call.is_done
    )


def _answered(
    progress: Transition, call: RoundCall, output: ToolOutput, digest: str, state: str = "answered"
) -> Transition:
    left_out = {"output": None, "input": None, "revision": "", "summary": ""}
    done = call.model_copy(update={"state": state, "answer_hash": digest, **left_out})
    told = ToolResultEvent(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        ok=output.ok,
        error=output.error,
        conflict=output.conflict,
    )
    return Transition(progress.pause.with_call(done), (*progress.events, told), (*progress.outputs, (call, output)))


def _requested(progress: Transition, call: RoundCall, now: float, nonce: str) -> Transition:
    pause = progress.pause
    index = pause.calls.index(call)
    deadline = min(now + call.wait_seconds, pause.expires - TURN_RETENTION_SECONDS)
    asked = call.model_copy(
        update={
            "state": "requested",
            "revision": pause.planned,
            "summary": _beginning(call.input) if call.mutates else "",
            "request_id": build_request_id(pause.round, index, nonce),
            "deadline": deadline,
            "input": None,
        }
    )
    told = ToolRequestEvent(
        request_id=asked.request_id,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        input=call.input,
        effect_key=call.effect_key,
        deadline=iso_from_epoch(deadline),
        revision=pause.planned or None,
        undoes=pause.takes_back.effect_key if pause.takes_back else None,
    )
    return replace(progress, pause=pause.with_call(asked), events=(*progress.events, told))


def _beginning(given: Any) -> str:
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_INPUT_SUMMARY_CHARS else text[:MAX_INPUT_SUMMARY_CHARS] + "…"
