"""Wait for the result of a remote tool that has answered 202 (decision 0329).

The id of the request is known before the tool is called, so that a result may come before the 202 is processed: it is
then kept with the call, and becomes its result when the round looks at its calls again.
"""

from collections.abc import Mapping
from dataclasses import replace

from fermata.aws.clock import iso_from_epoch
from fermata.domain.events import ToolAwaitedEvent
from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.turns.call_transitions import Transition
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall

REMOTE_REQUEST_MARK = "remote"
NO_RESULT_MESSAGE = "The tool accepted the call and did not send its result in time."


def build_remote_request_id(effect_key: str) -> str:
    """Return the id by which a remote tool names a call when it sends the result later."""
    _, round_text, call_text = effect_key.rsplit("/", 2)
    return f"{int(round_text)}.{call_text}.{REMOTE_REQUEST_MARK}"


def find_remote_call(pause: Pause, request_id: str) -> RoundCall | None:
    """Return the call with this id, whether its tool has answered 202 already or not."""
    return next((call for call in pause.calls if build_remote_request_id(call.effect_key) == request_id), None)


def await_remote_results(
    transition: Transition, outputs: Mapping[str, tuple[ToolOutput, str]], now: float
) -> Transition:
    """Mark the call whose result is awaited as requested, so that the pause waits for it as for a browser's.

    Args:
        transition: What follows from the outputs that are there.
        outputs: All outputs; the awaited one is the last.
        now: Epoch seconds; the deadline counts from it.
    """
    for call in transition.pause.calls:
        output = outputs.get(call.effect_key)
        if output is not None and output[0].is_awaited and not call.is_done:
            return _request_result(transition, call, output[0], now)
    return transition


def _request_result(transition: Transition, call: RoundCall, output: ToolOutput, now: float) -> Transition:
    pause = transition.pause
    deadline = min(now + output.data["seconds"], pause.deadline_limit)
    request_id = build_remote_request_id(call.effect_key)
    requested = call.model_copy(update={"state": "requested", "request_id": request_id, "deadline": deadline})
    event = ToolAwaitedEvent(tool_call_id=call.tool_call_id, tool_name=call.tool_name, until=iso_from_epoch(deadline))
    return replace(transition, pause=pause.with_call(requested), events=(*transition.events, event))


def build_expired_output() -> ToolOutput:
    """Return what the model reads of a call whose result did not come."""
    execution = ToolExecution(code="tool_execution_failed", retryable=True)
    return ToolOutput(ok=False, error=NO_RESULT_MESSAGE, execution=execution)


def keep_early_result(pause: Pause, call: RoundCall, output: ToolOutput, result_hash: str) -> Pause:
    """Return the pause with a result that has come while the call was still being made."""
    kept = {"runner": "settled", "known_output": output, "answer_hash": result_hash, "input": None, "state": "waiting"}
    return pause.with_call(call.model_copy(update=kept)).model_copy(update={"version": pause.version + 1})
