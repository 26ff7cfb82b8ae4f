"""A round's calls: who answers each one, and running those that are ours."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.events import ToolStartedEvent
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import (
    AdmittedCall,
    admit_call,
    apply_result_policy,
    build_effect_key,
    get_timeout_seconds,
    needs_started_mark,
)
from fermata.tools.calls.runner import run_tool
from fermata.tools.tool import Access, Execution
from fermata.turns.commits import RoundCommit
from fermata.turns.pause import Pause, RoundCall
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.transitions import MAX_OUTPUTS_PER_COMMIT, Transition

TRUNCATED_RESPONSE_OUTPUT = ToolOutput.failure(
    "Your reply was cut off at the token limit, so none of its tool calls was run. Call again with less in one reply."
)
UNKNOWN_OUTCOME_OUTPUT = ToolOutput.failure(
    "This call was started and its outcome is unknown. Check the current state before you repeat it."
)

CallOutputs = dict[str, tuple[ToolOutput, str]]


def build_round_calls(context: TurnContext, blocks: Sequence[ToolCallBlock], *, is_truncated: bool) -> list[RoundCall]:
    """The reply's calls as a pause keeps them. Nothing of a truncated reply is run (scenarios R5, R6)."""
    return [_call(context, index, block, is_truncated) for index, block in enumerate(blocks)]


def _call(work: TurnContext, index: int, block: ToolCallBlock, is_truncated: bool) -> RoundCall:
    key, name = build_effect_key(work.turn.id, work.log.state.round, index), work.to_wire_name(block.tool_name)
    admitted = (
        TRUNCATED_RESPONSE_OUTPUT if is_truncated else admit_call(work.toolset, block, work.build_tool_context(key))
    )
    if isinstance(admitted, ToolOutput):
        return RoundCall(
            tool_call_id=block.tool_call_id,
            tool_name=name,
            runner="settled",
            mutates=False,
            effect_key=key,
            wait_seconds=0,
            output=admitted,
        )
    tool = admitted.tool
    return RoundCall(
        tool_call_id=block.tool_call_id,
        tool_name=name,
        runner="browser" if tool.execution is Execution.BROWSER else "server",
        mutates=tool.capability is Access.WRITE,
        effect_key=key,
        wait_seconds=get_timeout_seconds(tool, work.resources.settings.browser_wait_seconds),
        input=_asked_of_the_browser(work, admitted),
    )


def _asked_of_the_browser(work: TurnContext, admitted: AdmittedCall) -> dict[str, Any]:
    """An editor need not draw what the model cannot look at."""
    tool = admitted.tool
    sight = {tool.vision_flag: work.model_profile.reads_result_images} if tool.vision_flag else {}
    return {**admitted.arguments, **tool.extra_browser_input, **sight}


def run_server_calls(context: TurnContext, pause: Pause) -> CallOutputs:
    """Run the server calls that come next, in order.

    Harmless ones are run together; one with side effects is marked as started first and answered alone. A call that
    was started by a function that died is not run again.
    """
    answers: CallOutputs = {}
    for call in pause.calls:
        if call.is_done:
            continue
        if call.runner != "server" or len(answers) == MAX_OUTPUTS_PER_COMMIT:
            break
        if answers and not context.has_time_for(call.wait_seconds):
            break
        if call.state == "started":
            return answers or {call.effect_key: (UNKNOWN_OUTCOME_OUTPUT, "")}
        admitted = _admitted(context, call)
        if isinstance(admitted, AdmittedCall) and needs_started_mark(admitted.tool):
            return answers or _run_once(context, pause, call, admitted)
        answers[call.effect_key] = (_run(context, call, admitted), "")
    return answers


def run_instant_calls(context: TurnContext, pause: Pause) -> CallOutputs:
    """The calls before the first one that somebody has to be waited for, as far as they are instant."""
    answers: CallOutputs = {}
    for call in pause.calls[:MAX_OUTPUTS_PER_COMMIT]:
        if call.runner == "settled":
            continue
        admitted = _admitted(context, call) if call.runner == "server" else None
        if not isinstance(admitted, AdmittedCall) or not admitted.tool.instant:
            break
        answers[call.effect_key] = (_output(context, call, admitted), "")
    return answers


def _admitted(work: TurnContext, call: RoundCall) -> AdmittedCall | ToolOutput:
    block = ToolCallBlock(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input)
    return admit_call(work.toolset, block, work.build_tool_context(call.effect_key))


def _run_once(work: TurnContext, pause: Pause, call: RoundCall, admitted: AdmittedCall) -> CallOutputs:
    marked = pause.with_call(call.model_copy(update={"state": "started"}))
    progress = Transition(marked.model_copy(update={"version": pause.version + 1}))
    work.commit(RoundCommit.for_pause(pause, progress=progress, events=(ToolStartedEvent(effect_key=call.effect_key),)))
    return {call.effect_key: (_run(work, call, admitted), "")}


def _run(work: TurnContext, call: RoundCall, admitted: AdmittedCall | ToolOutput) -> ToolOutput:
    if isinstance(admitted, ToolOutput):
        return admitted
    with StreamWriter(work.resources, work.log, work.heartbeat, abort=work.abort_host_call):
        return _output(work, call, admitted)


def _output(work: TurnContext, call: RoundCall, admitted: AdmittedCall) -> ToolOutput:
    context = replace(work.build_tool_context(call.effect_key), snapshot=work.load_snapshot())
    return apply_result_policy(admitted.tool, run_tool(admitted, context))
