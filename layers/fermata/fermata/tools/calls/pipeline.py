"""Admit a tool call, parse its input and output, and shape the result for the model.

Every call of every toolset passes the same steps in the same order:

1. `admit_call` checks the name, scope, tenant, permissions, role, phase and input, and whether a person must agree.
2. `runner.run_tool` runs a server tool. The result of any other tool is posted and read by `parse_tool_output`.
3. `apply_result_policy` limits the result to what the model may see.

Every failure is returned to the model as a failed `ToolOutput`; nothing is raised.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.caller import Capability
from fermata.domain.json_shortening import shorten_data, shorten_text
from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.schema.coercion import InvalidToolInput, coerce_arguments, join_errors, list_ignored_members
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.tool import Access, ResultPolicy, Tool, ToolContext, ToolInput
from fermata.tools.tool_names import iter_name_keys, make_name_key
from fermata.tools.toolset import Toolset, list_tool_names

MAX_NEAREST_NAMES = 3
MIN_NAME_SIMILARITY = 0.7
INVALID_INPUT_CODE = "invalid_tool_input"
_DEFAULT_ERROR = "Tool call failed."


@value_dataclass(frozen=True)
class AdmittedCall:
    """A call that may run: `tool_input` is for a handler of ours, `arguments` for a browser or another service."""

    tool: Tool
    tool_input: ToolInput
    arguments: dict[str, Any]
    ignored_members: tuple[str, ...] = ()
    """What the model sent and no release of the tool has. The model is told (decision 0218)."""
    needs_confirmation: bool = False


def admit_call(
    toolset: Toolset,
    call: ToolCallBlock,
    context: ToolContext,
    display_name: Callable[[str], str] = str,
) -> AdmittedCall | ToolOutput:
    """Check a call against its tool and its caller.

    Args:
        toolset: The tools of the turn's scope.
        call: The call as the model made it, with unchecked input.
        context: The caller's rights, role and phase.
        display_name: Maps the name of a tool to the one that the model knows.

    Returns:
        The call with its validated input, or a failed output that states to the model why it is refused.
    """
    tool = toolset.find_tool(call.tool_name)
    if tool is None or not tool.is_available_in(context.scope, context.tenant):
        return ToolOutput.failure(_describe_unknown_tool(toolset, call.tool_name, context, display_name))
    if not tool.permits(context.capabilities, context.role):
        return ToolOutput.failure(f"Tool {call.tool_name} is not permitted for this user.")
    if not tool.is_in_phase(context.phase):
        return ToolOutput.failure(_describe_wrong_phase(tool, call.tool_name, context.phase))
    try:
        arguments, tool_input = parse_tool_input(tool, call)
    except InvalidToolInput as error:
        execution = ToolExecution(code=INVALID_INPUT_CODE, retryable=False) if tool.declared_schema else None
        return ToolOutput(ok=False, error=str(error), execution=execution)
    return AdmittedCall(
        tool,
        tool_input,
        arguments,
        _list_ignored_members(tool, call),
        needs_confirmation=tool.confirmation_flag is not None and arguments.get(tool.confirmation_flag) is not True,
    )


def _describe_unknown_tool(
    toolset: Toolset, name: str, context: ToolContext, display_name: Callable[[str], str]
) -> str:
    """Name the tools that the model may have meant."""
    tools = toolset.list_permitted_tools(
        context.capabilities, context.scope, tenant=context.tenant, role=context.role, phase=context.phase
    )
    from difflib import get_close_matches  # imported here because models seldom invent a name

    names_by_key = {make_name_key(own): display_name(tool.name) for tool in tools for own in list_tool_names(tool)}
    keys = [
        similar
        for key in iter_name_keys(name)
        for similar in get_close_matches(key, names_by_key, n=MAX_NEAREST_NAMES, cutoff=MIN_NAME_SIMILARITY)
    ]
    nearest = list(dict.fromkeys(names_by_key[key] for key in keys))[:MAX_NEAREST_NAMES]
    return f"Unknown tool: {name}" + (f". The nearest are: {', '.join(nearest)}." if nearest else "")


def _describe_wrong_phase(tool: Tool, name: str, phase: str | None) -> str:
    return f"Tool {name} works only in phase {' or '.join(sorted(tool.phases))}; now it is {phase or 'none of them'}."


def parse_tool_input(tool: Tool, call: ToolCallBlock) -> tuple[dict[str, Any], ToolInput]:
    """Coerce the arguments of a call to its tool's schema and validate them.

    Returns:
        The arguments as JSON, and the same as the tool's input model.

    Raises:
        InvalidToolInput: The arguments do not fit; the message names the tool and every mistake.
    """
    if call.malformed:
        problem = f" {call.problem}" if call.problem else ""
        raise InvalidToolInput(
            f"The arguments of {call.tool_name} were not valid JSON or were cut off, so nothing was done. "
            f"Call it again with complete and smaller arguments, for example one part at a time.{problem}"
        )
    if tool.declared_schema is not None:
        return _parse_declared_input(tool, call)
    _check_members_of_other_generations(tool, call)
    try:
        arguments = coerce_arguments(tool.input_schema, call.input)
        return arguments, tool.input_model.from_wire(arguments)
    except InvalidToolInput as error:
        raise InvalidToolInput(f"Invalid input for {call.tool_name}: {error}.") from None
    except ValidationError as error:
        errors = join_errors(describe_pydantic_errors(error))
        raise InvalidToolInput(f"Invalid input for {call.tool_name}: {errors}.") from None


def _parse_declared_input(tool: Tool, call: ToolCallBlock) -> tuple[dict[str, Any], ToolInput]:
    """Validate the arguments of a tool that a tenant has registered. Nothing is coerced (decision 0326)."""
    from fermata.tools.schema.validate_manifest_value import find_schema_violation  # most tools have a model

    arguments = {} if call.input in (None, "", []) else call.input
    violation = find_schema_violation(tool.input_schema | {"type": "object"}, arguments)
    if violation is not None:
        raise InvalidToolInput(f"Invalid input for {call.tool_name}: {violation}.")
    return arguments, tool.input_model.from_wire(arguments)


def _check_members_of_other_generations(tool: Tool, call: ToolCallBlock) -> None:
    members = call.input if isinstance(call.input, dict) else {}
    for name in sorted(tool.members_of_other_generations & members.keys()):
        if members[name] is not None and members[name] != tool.extra_browser_input.get(name):
            raise InvalidToolInput(
                f"Invalid input for {call.tool_name}: {name}: This release of the editor does not have it, so nothing "
                "was done. Do without it, or tell the user what cannot be done here."
            )


def split_own_members(tool: Tool, call_input: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the stored input of a call into the model's arguments and what the service itself has added."""
    own_names = {*tool.extra_browser_input, tool.vision_flag} - tool.input_schema.get("properties", {}).keys()
    arguments = {name: value for name, value in call_input.items() if name not in own_names}
    return arguments, {name: value for name, value in call_input.items() if name in own_names}


def _list_ignored_members(tool: Tool, call: ToolCallBlock) -> tuple[str, ...]:
    """Members that the service itself sets are not among them, and no tool of a tenant ignores any."""
    if tool.declared_schema is not None:
        return ()
    own = {*tool.extra_browser_input, tool.vision_flag}
    return tuple(name for name in list_ignored_members(tool.input_schema, call.input) if name not in own)


def add_ignored_members(output: ToolOutput, ignored_members: tuple[str, ...]) -> ToolOutput:
    """Tell the model what of its input had no effect (decision 0218)."""
    if not ignored_members:
        return output
    if not output.ok:
        return output.model_copy(update={"error": f"{output.error} Ignored input: {', '.join(ignored_members)}."})
    data = output.data if isinstance(output.data, dict) else {} if output.data is None else {"result": output.data}
    return output.model_copy(update={"data": {**data, "ignoredInput": list(ignored_members)}})


def get_timeout_seconds(tool: Tool, default_seconds: float) -> float:
    """Return how long one attempt of a call may take: the tool's own timeout, or else `default_seconds`."""
    return default_seconds if tool.timeout_seconds is None else tool.timeout_seconds


def build_effect_key(turn: str, round_number: int, call: str | int) -> str:
    """Build the key by which a receiver of a call recognises its repetitions, so that it acts only once.

    Args:
        turn: The turn's id.
        round_number: The round that asked for the call.
        call: The call's index in its round.
    """
    return f"{turn}/{round_number}/{call}"


def needs_started_mark(tool: Tool) -> bool:
    """Return whether a call is marked as started before it runs: one without a result is then never run again."""
    return not tool.idempotent


def get_answer_capability(tool: Tool) -> Capability:
    """Return the capability that posting a result of this tool requires."""
    return Capability.WRITE if tool.access is Access.WRITE else Capability.CHAT


def parse_tool_output(value: Any) -> ToolOutput:
    """Read a posted result, or what a handler returned, as a ToolOutput.

    A value that is no ToolOutput is the data of a success, except that `ok: false` is always a failure. Posted results
    are validated before they come here (decision 0095).
    """
    if isinstance(value, ToolOutput):
        return _ensure_error_text(value)
    if not isinstance(value, dict) or type(value.get("ok")) is not bool:
        return ToolOutput.success(value)
    try:
        return _ensure_error_text(ToolOutput.from_wire(value))
    except ValidationError:
        return ToolOutput.success(value) if value["ok"] else ToolOutput.failure(_error_text_from(value.get("error")))


def _ensure_error_text(output: ToolOutput) -> ToolOutput:
    if output.ok or (output.error or "").strip():
        return output
    return output.model_copy(update={"error": _DEFAULT_ERROR})


def _error_text_from(error: Any) -> str:
    return error if isinstance(error, str) and error.strip() else _DEFAULT_ERROR


def apply_result_policy(tool: Tool, output: ToolOutput) -> ToolOutput:
    """Limit an output to what the tool's result policy lets the model see."""
    return limit_output(tool.result_policy, output)


def limit_output(policy: ResultPolicy, output: ToolOutput) -> ToolOutput:
    """Limit an output to what a result policy lets the model see."""
    max_chars = policy.max_chars
    data = shorten_data(output.data, max_chars)
    return ToolOutput(
        ok=output.ok,
        data=data,
        whole_data=output.data if policy.shows_whole and data is not output.data else None,
        error=None if output.error is None else shorten_text(output.error, max_chars),
        images=output.images if policy.images else None,
        execution=output.execution,
    )
