"""From a call the model made to the result it reads, in one fixed order for every tool of every toolset.

`admit` goes up to the moment somebody acts (name, place, tenant, permission and role, phase, input, and whether a
person must be asked first); `run` (running.py) carries a tool out here; `parse_answer` reads what somebody else
carried out; `shape` makes either fit for the model. Whatever goes wrong on the way is a failed ToolOutput, which the
model reads.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.caller import Capability
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.trimming import shorten_data, shorten_text
from fermata.tools.schema.coercion import InvalidToolInput, coerce_arguments, join_errors
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.tool import Access, Execution, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

DEFAULT_TOOL_ERROR = "Tool call failed."


@dataclass(frozen=True)
class AdmittedCall:
    """A call that may go ahead: `given` for our own functions, `arguments` for whoever else acts."""

    tool: Tool
    tool_input: ToolInput
    arguments: dict[str, Any]
    needs_approval: bool = False
    needs_confirmation: bool = False


class Dispatch(StrEnum):
    """Who the turn waits for: nobody, since it runs here; the browser; or somebody who may take days."""

    RUN = "run"
    BROWSER = "browser"
    HOLD = "hold"


def admit_call(toolset: Toolset, call: ToolCallBlock, context: ToolContext) -> AdmittedCall | ToolOutput:
    tool = toolset.find_tool(call.tool_name)
    if tool is None or not tool.is_available_in(context.scope, context.tenant):
        return ToolOutput.failure(f"Unknown tool: {call.tool_name}")
    if not tool.permits(context.capabilities, context.role):
        return ToolOutput.failure(f"Tool {call.tool_name} is not permitted for this user.")
    if not tool.is_in_phase(context.phase):
        return ToolOutput.failure(_wrong_phase(tool, call.tool_name, context.phase))
    try:
        arguments, given = parse_tool_input(tool, call)
    except InvalidToolInput as fault:
        return ToolOutput.failure(str(fault))
    return AdmittedCall(
        tool,
        given,
        arguments,
        needs_approval=tool.needs_approval,
        needs_confirmation=tool.confirmation is not None and arguments.get(tool.confirmation) is not True,
    )


def _wrong_phase(tool: Tool, name: str, phase: str | None) -> str:
    return f"Tool {name} works only in phase {' or '.join(sorted(tool.phases))}; now it is {phase or 'none of them'}."


def parse_tool_input(tool: Tool, call: ToolCallBlock) -> tuple[dict[str, Any], ToolInput]:
    """What a call says, made to fit; raises InvalidInput, which names the tool and every mistake."""
    if call.malformed:
        raise InvalidToolInput(
            f"The arguments of {call.tool_name} were not valid JSON or were cut off, so nothing was done. "
            "Call it again with complete and smaller arguments, for example one part at a time."
        )
    try:
        arguments = coerce_arguments(tool.input_schema, call.input)
        return arguments, tool.input.from_wire(arguments)
    except InvalidToolInput as fault:
        raise InvalidToolInput(f"Invalid input for {call.tool_name}: {fault}.") from None
    except ValidationError as refused:
        raise InvalidToolInput(
            f"Invalid input for {call.tool_name}: {join_errors(describe_pydantic_errors(refused))}."
        ) from None


def choose_dispatch(admitted: AdmittedCall, browser_seconds: float) -> Dispatch:
    """A browser tool that may take longer than the usual wait is held like an approval."""
    if admitted.needs_approval or admitted.needs_confirmation:
        return Dispatch.HOLD
    if admitted.tool.execution is not Execution.BROWSER:
        return Dispatch.RUN
    patient = get_timeout_seconds(admitted.tool, browser_seconds) > browser_seconds
    return Dispatch.HOLD if patient else Dispatch.BROWSER


def get_timeout_seconds(tool: Tool, default_seconds: float) -> float:
    return default_seconds if tool.timeout_seconds is None else tool.timeout_seconds


def build_effect_key(turn: str, round_number: int, call: str | int) -> str:
    """The same for every repetition of one call, so that whoever acts can act once."""
    return f"{turn}/{round_number}/{call}"


def needs_started_mark(tool: Tool) -> bool:
    """Started without a result, such a call is never run again."""
    return not tool.idempotent


def get_answer_capability(tool: Tool) -> Capability:
    """What a caller needs to post this tool's result."""
    return Capability.WRITE if tool.capability is Access.WRITE else Capability.CHAT


def parse_tool_output(value: Any) -> ToolOutput:
    """What somebody posted, or a handler returned, as a ToolOutput.

    Anything that is not one counts as the data of a success, except that `ok: false` is always a failure.
    """
    if isinstance(value, ToolOutput):
        return _with_reason(value)
    if not isinstance(value, dict) or type(value.get("ok")) is not bool:
        return ToolOutput.success(value)
    try:
        return _with_reason(ToolOutput.from_wire(value))
    except ValidationError:
        return ToolOutput.success(value) if value["ok"] else ToolOutput.failure(_reason_in(value.get("error")))


def _with_reason(output: ToolOutput) -> ToolOutput:
    if output.ok or (output.error or "").strip():
        return output
    return output.model_copy(update={"error": DEFAULT_TOOL_ERROR})


def _reason_in(error: Any) -> str:
    return error if isinstance(error, str) and error.strip() else DEFAULT_TOOL_ERROR


def apply_result_policy(tool: Tool, output: ToolOutput) -> ToolOutput:
    """As much of the output as the tool's result policy lets the model see."""
    limit = tool.result.max_chars
    return ToolOutput(
        ok=output.ok,
        data=shorten_data(output.data, limit),
        error=None if output.error is None else shorten_text(output.error, limit),
        images=output.images if tool.result.images else None,
    )
