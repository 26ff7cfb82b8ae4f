"""Build a round's calls from the model's response, and run those that the server executes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.events import Event, ToolStartedEvent
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import (
    AdmittedCall,
    admit_call,
    apply_result_policy,
    build_effect_key,
    get_timeout_seconds,
    needs_started_mark,
    split_own_members,
)
from fermata.tools.calls.runner import run_tool
from fermata.tools.tool import Access, Approval, Execution
from fermata.turns.approvals.call_input_hash import hash_call_input
from fermata.turns.approvals.request_approval import CallJudge, runs_unasked
from fermata.turns.call_transitions import MAX_OUTPUTS_PER_COMMIT, Transition
from fermata.turns.pause import Pause
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import CallRunner, RoundCall
from fermata.turns.round_commit import RoundCommit
from fermata.turns.sub_agents.sub_agent_limits import refuse_sub_agent

if TYPE_CHECKING:
    from fermata.turns.round.remote_calls import TurnRemoteTools

TRUNCATED_RESPONSE_OUTPUT = ToolOutput.failure(
    "Your reply was cut off at the token limit, so none of its tool calls was run. Call again with less in one reply."
)
UNKNOWN_OUTCOME_OUTPUT = ToolOutput.failure(
    "This call was started and its outcome is unknown. Check the current state before you repeat it."
)
NO_EDITOR_OUTPUT = ToolOutput.failure(
    "No editor is connected in this turn, so nothing was done. Answer in words, without tools of the editor."
)
CHANGED_CALL_OUTPUT = ToolOutput.failure(
    "The tool was changed after this call was decided about, so nothing was done. Call it again if it is still needed."
)
DROPPED_CALL_OUTPUT = ToolOutput.failure(
    "This call was dropped, because another call of the same reply ends the work. Nothing was done."
)

_RUNNERS: Mapping[Execution, CallRunner] = {Execution.BROWSER: "browser", Execution.AGENT: "agent"}

CallOutputs = dict[str, tuple[ToolOutput, str]]
"""By effect key: the output of a call and the hash of the posted result (empty for the server's own calls)."""


def build_round_calls(
    context: TurnContext, judge: CallJudge, blocks: Sequence[ToolCallBlock], *, is_truncated: bool
) -> list[RoundCall]:
    """Return the response's calls in its order.

    A call that is refused gets its output now. So does every call of a truncated response, because the input of its
    last call may be incomplete. A call that needs a person waits for a decision.

    Args:
        context: The invocation.
        judge: Of this round.
        blocks: The calls as the model made them.
        is_truncated: Whether the response was cut off.
    """
    built = [_build_call(context, judge, index, block, is_truncated) for index, block in enumerate(blocks)]
    calls = _refuse_sub_agents_over_limits(context, built)
    last = next((call for call in calls if _ends_turn(context, call)), None)
    return calls if last is None else [call if call is last else _drop_call(call) for call in calls]


def _refuse_sub_agents_over_limits(context: TurnContext, calls: list[RoundCall]) -> list[RoundCall]:
    """Settle the calls that would ask one sub-agent too many, or one too deep."""
    asking = [call.effect_key for call in calls if call.runner == "agent"]
    refusals = {
        key: refusal
        for index, key in enumerate(asking)
        if (refusal := refuse_sub_agent(context.turn, context.log.state, index)) is not None
    }
    return [_settle_call(call, refusals[call.effect_key]) if call.effect_key in refusals else call for call in calls]


def _ends_turn(context: TurnContext, call: RoundCall) -> bool:
    tool = context.toolset.find_tool(call.tool_name) if call.runner == "server" else None
    return tool is not None and tool.ends_turn


def _drop_call(call: RoundCall) -> RoundCall:
    return _settle_call(call, DROPPED_CALL_OUTPUT)


def _settle_call(call: RoundCall, output: ToolOutput) -> RoundCall:
    dropped = {"runner": "settled", "is_edit": False, "wait_seconds": 0, "known_output": output}
    return call.model_copy(update={**dropped, "input": None, "state": "waiting", "approval": None})


def _build_call(
    context: TurnContext, judge: CallJudge, index: int, block: ToolCallBlock, is_truncated: bool
) -> RoundCall:
    effect_key = build_effect_key(context.turn.id, context.log.state.round, index)
    tool_context = context.build_tool_context(effect_key)
    active = context.step_settings.active_tools
    if active is not None and block.tool_name not in active and not is_truncated:
        output = ToolOutput.failure(f"Tool {block.tool_name} cannot be called in this step.")
        return _build_settled_call(context, block, effect_key, output)
    admitted = (
        TRUNCATED_RESPONSE_OUTPUT
        if is_truncated
        else admit_call(context.toolset, block, tool_context, context.to_wire_name)
    )
    if isinstance(admitted, ToolOutput):
        return _build_settled_call(context, block, effect_key, admitted)
    if admitted.tool.execution is Execution.BROWSER and not context.turn.has_browser_tools:
        return _build_settled_call(context, block, effect_key, NO_EDITOR_OUTPUT)
    approval = judge.judge(index, admitted)
    if isinstance(approval, ToolOutput):
        return _build_settled_call(context, block, effect_key, approval)
    tool = admitted.tool
    return RoundCall(
        tool_call_id=block.tool_call_id,
        tool_name=context.to_wire_name(block.tool_name),
        runner=_RUNNERS.get(tool.execution, "server"),
        is_edit=tool.access is Access.WRITE,
        effect_key=effect_key,
        wait_seconds=_find_wait_seconds(context, admitted),
        input=_build_call_input(context, admitted),
        ignored_members=admitted.ignored_members,
        state="approval" if approval else "waiting",
        approval=approval,
    )


def _find_wait_seconds(context: TurnContext, admitted: AdmittedCall) -> float:
    """Return how long a call takes at most. A plan also waits for the images that it uses."""
    seconds = get_timeout_seconds(admitted.tool, context.resources.settings.browser_wait_seconds)
    if not admitted.tool.ends_turn or not context.turn.remote_tools:
        return seconds
    from fermata.turns.round.deferred_images import find_image_seconds  # few turns generate images

    return seconds + find_image_seconds(admitted.arguments)


def _build_settled_call(context: TurnContext, block: ToolCallBlock, effect_key: str, output: ToolOutput) -> RoundCall:
    """Build a call that nobody runs, because what the model reads of it is known."""
    return RoundCall(
        tool_call_id=block.tool_call_id,
        tool_name=context.to_wire_name(block.tool_name),
        runner="settled",
        is_edit=False,
        effect_key=effect_key,
        wait_seconds=0,
        known_output=output,
    )


def _build_call_input(context: TurnContext, admitted: AdmittedCall) -> dict[str, Any]:
    """Add what the tool sends besides the model's arguments, such as whether the model can see an image."""
    tool = admitted.tool
    vision = {tool.vision_flag: context.model_profile.reads_result_images} if tool.vision_flag else {}
    return {**admitted.arguments, **tool.extra_browser_input, **vision}


def run_server_calls(context: TurnContext, pause: Pause) -> CallOutputs:
    """Run the server calls that come next, in order, and return their outputs.

    Calls without side effects are run together. A call with side effects is first marked as started, in a commit of
    its own, and answered alone. A call that a dead function had started is never run again: its outcome is unknown.
    """
    outputs: CallOutputs = {}
    for call in pause.calls:
        if call.is_done:
            continue
        if call.runner != "server" or call.waits_until or len(outputs) == MAX_OUTPUTS_PER_COMMIT:
            break
        if outputs and not context.has_time_for(call.wait_seconds):
            break
        if call.state == "started":
            return outputs or {call.effect_key: (UNKNOWN_OUTCOME_OUTPUT, "")}
        admitted = admit_stored_call(context, call)
        if isinstance(admitted, AdmittedCall) and needs_started_mark(admitted.tool):
            return outputs or _mark_and_run(context, pause, call, admitted)
        outputs[call.effect_key] = (_run_cancellably(context, call, admitted), "")
        if outputs[call.effect_key][0].is_awaited:
            break
    return outputs


def run_instant_calls(context: TurnContext, pause: Pause) -> CallOutputs:
    """Run the instant calls before the first call that is not instant (decision 0008)."""
    outputs: CallOutputs = {}
    for call in pause.calls[:MAX_OUTPUTS_PER_COMMIT]:
        if call.runner == "settled":
            continue
        admitted = admit_stored_call(context, call) if call.runner == "server" and not call.waits_until else None
        if not isinstance(admitted, AdmittedCall) or not admitted.tool.instant:
            break
        outputs[call.effect_key] = (_run(context, call, admitted), "")
    return outputs


def admit_stored_call(context: TurnContext, call: RoundCall) -> AdmittedCall | ToolOutput:
    """Check a call once more before it runs, because it may have waited for a person.

    Args:
        context: The invocation.
        call: The call as the pause stores it.
    """
    block = ToolCallBlock(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input)
    admitted = admit_call(context.toolset, block, context.build_tool_context(call.effect_key))
    if isinstance(admitted, AdmittedCall) and not _is_decision_valid(context, call, admitted):
        return CHANGED_CALL_OUTPUT
    return admitted


def _is_decision_valid(context: TurnContext, call: RoundCall, admitted: AdmittedCall) -> bool:
    """Return whether a call is what was approved, in case that the tool was changed since then (decision 0314)."""
    tool, approval = admitted.tool, call.approval
    if approval is None:
        return tool.approval is not Approval.ALWAYS or runs_unasked(context.turn)
    bound_to = (approval.agent, approval.tool_digest, approval.input_hash)
    input_hash = hash_call_input(tool.name, split_own_members(tool, admitted.arguments)[0])
    return approval.is_granted and bound_to == (context.agent.reference, tool.digest, input_hash)


def compare_approved_calls(context: TurnContext, pause: Pause) -> tuple[list[str], CallOutputs]:
    """Compare the approved browser calls that come next with their tools, which may have changed while they waited.

    Returns:
        The effect keys of those that are what was approved, and the outputs of the others.
    """
    current: list[str] = []
    changed: CallOutputs = {}
    for call in pause.calls:
        if call.runner != "browser" or call.state != "waiting" or call.approval is None:
            continue
        tool = context.toolset.find_tool(call.approval.tool)
        bound_to = (call.approval.agent, call.approval.tool_digest)
        if call.approval.is_granted and tool and bound_to == (context.agent.reference, tool.digest):
            current.append(call.effect_key)
        else:
            changed[call.effect_key] = (CHANGED_CALL_OUTPUT, "")
    return current, changed


def _mark_and_run(context: TurnContext, pause: Pause, call: RoundCall, admitted: AdmittedCall) -> CallOutputs:
    marked = pause.with_call(call.model_copy(update={"state": "started"}))
    transition = Transition(marked.model_copy(update={"version": pause.version + 1}))
    started_event = ToolStartedEvent(effect_key=call.effect_key)
    context.commit(RoundCommit.for_pause(pause, transition, first_events=(started_event,)))
    return {call.effect_key: (_run_cancellably(context, call, admitted), "")}


def _run_cancellably(context: TurnContext, call: RoundCall, admitted: AdmittedCall | ToolOutput) -> ToolOutput:
    if isinstance(admitted, ToolOutput):
        return admitted
    with StreamWriter(context.resources, context.log, context.heartbeat, abort=context.abort_host_call) as writer:
        writer.check_log()
        return _run(context, call, admitted)


def _ask_about_plans(context: TurnContext, call: RoundCall, events: Sequence[Event]) -> Sequence[Event]:
    from fermata.turns.approvals.held_plan_listing import build_plan_requests  # imported here: few tools submit plans

    return build_plan_requests(events, call.tool_call_id, context.resources.clock.now_iso())


def _add_deferred_images(
    context: TurnContext, tools: "TurnRemoteTools", admitted: AdmittedCall, effect_key: str
) -> AdmittedCall:
    from fermata.turns.round.deferred_images import add_deferred_images  # few turns generate images

    context.load_history()
    messages = context.history.stored_messages if context.history else ()
    return add_deferred_images(context.resources, tools, admitted, messages, effect_key)


def _run(context: TurnContext, call: RoundCall, admitted: AdmittedCall) -> ToolOutput:
    tool_context = replace(
        context.build_tool_context(call.effect_key),
        snapshot=context.load_snapshot(),
        open_draft=partial(context.open_draft, call.tool_call_id),
    )
    if admitted.tool.ends_turn and context.remote_tools:
        admitted = _add_deferred_images(context, context.remote_tools, admitted, call.effect_key)
    output = run_tool(admitted, tool_context, clock=context.resources.clock)
    if admitted.tool.build_events is not None:
        events = admitted.tool.build_events(output, context.log.state.refused_plans)
        context.result_events += (*_ask_about_plans(context, call, events), *events)
    return apply_result_policy(admitted.tool, output)
