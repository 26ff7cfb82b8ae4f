"""A round's calls: who answers each one, and running those that are ours."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fermata.tools.pipeline import Admitted, admit, effect_key, needs_started_mark, shape, wait_seconds
from fermata.tools.running import run
from fermata.tools.tool import Access, Execution
from fermata.turns.commits import Commit
from fermata.turns.pause import Call, Pause
from fermata.turns.progress import MOST_OUTPUTS, Progress
from fermata.turns.vigil import Vigil
from fermata.turns.work import Work
from fermata.words.blocks import ToolCallBlock
from fermata.words.events import ToolStarted
from fermata.words.tools import ToolOutput

TRUNCATED = ToolOutput.failed(
    "Your reply was cut off at the token limit, so none of its tool calls was run. Call again with less in one reply."
)
UNKNOWN_OUTCOME = ToolOutput.failed(
    "This call was started and its outcome is unknown. Check the current state before you repeat it."
)

Answers = dict[str, tuple[ToolOutput, str]]


def calls_of(work: Work, blocks: Sequence[ToolCallBlock], *, is_truncated: bool) -> list[Call]:
    """The reply's calls as a pause keeps them. Nothing of a truncated reply is run (scenarios R5, R6)."""
    return [_call(work, index, block, is_truncated) for index, block in enumerate(blocks)]


def _call(work: Work, index: int, block: ToolCallBlock, is_truncated: bool) -> Call:
    key, name = effect_key(work.turn.id, work.log.standing.round, index), work.on_the_wire(block.tool_name)
    admitted = TRUNCATED if is_truncated else admit(work.toolset, block, work.context(key))
    if isinstance(admitted, ToolOutput):
        return Call(
            tool_call_id=block.tool_call_id,
            tool_name=name,
            runner="settled",
            mutates=False,
            effect_key=key,
            wait_seconds=0,
            output=admitted,
        )
    tool = admitted.tool
    return Call(
        tool_call_id=block.tool_call_id,
        tool_name=name,
        runner="browser" if tool.execution is Execution.BROWSER else "server",
        mutates=tool.capability is Access.WRITE,
        effect_key=key,
        wait_seconds=wait_seconds(tool, work.desk.settings.browser_wait_seconds),
        input=_asked_of_the_browser(work, admitted),
    )


def _asked_of_the_browser(work: Work, admitted: Admitted) -> dict[str, Any]:
    """An editor need not draw what the model cannot look at."""
    tool = admitted.tool
    sight = {tool.vision_flag: work.recipient.sees_results} if tool.vision_flag else {}
    return {**admitted.arguments, **tool.sent_along, **sight}


def run_ours(work: Work, pause: Pause) -> Answers:
    """Run the server calls that come next, in order.

    Harmless ones are run together; one with side effects is marked as started first and answered alone. A call that
    was started by a function that died is not run again.
    """
    answers: Answers = {}
    for call in pause.calls:
        if call.is_done:
            continue
        if call.runner != "server" or len(answers) == MOST_OUTPUTS:
            break
        if answers and not work.has_time_for(call.wait_seconds):
            break
        if call.state == "started":
            return answers or {call.effect_key: (UNKNOWN_OUTCOME, "")}
        admitted = _admitted(work, call)
        if isinstance(admitted, Admitted) and needs_started_mark(admitted.tool):
            return answers or _run_once(work, pause, call, admitted)
        answers[call.effect_key] = (_run(work, call, admitted), "")
    return answers


def run_at_once(work: Work, pause: Pause) -> Answers:
    """The calls before the first one that somebody has to be waited for, as far as they are instant."""
    answers: Answers = {}
    for call in pause.calls[:MOST_OUTPUTS]:
        if call.runner == "settled":
            continue
        admitted = _admitted(work, call) if call.runner == "server" else None
        if not isinstance(admitted, Admitted) or not admitted.tool.instant:
            break
        answers[call.effect_key] = (_output(work, call, admitted), "")
    return answers


def _admitted(work: Work, call: Call) -> Admitted | ToolOutput:
    block = ToolCallBlock(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input)
    return admit(work.toolset, block, work.context(call.effect_key))


def _run_once(work: Work, pause: Pause, call: Call, admitted: Admitted) -> Answers:
    marked = pause.with_call(call.model_copy(update={"state": "started"}))
    progress = Progress(marked.model_copy(update={"version": pause.version + 1}))
    work.commit(Commit.of(pause, progress=progress, events=(ToolStarted(effect_key=call.effect_key),)))
    return {call.effect_key: (_run(work, call, admitted), "")}


def _run(work: Work, call: Call, admitted: Admitted | ToolOutput) -> ToolOutput:
    if isinstance(admitted, ToolOutput):
        return admitted
    with Vigil(work.desk, work.log, work.pulse, hang_up=work.hang_up):
        return _output(work, call, admitted)


def _output(work: Work, call: Call, admitted: Admitted) -> ToolOutput:
    context = replace(work.context(call.effect_key), snapshot=work.snapshot())
    return shape(admitted.tool, run(admitted, context))
