"""Accept the result that a remote tool sends later, signed with the tool's secret (decision 0329)."""

from collections.abc import Mapping
from typing import Any

from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, ServiceUnavailable, Unauthorized, Unprocessable
from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.remote_tools.manifest_tool_executor import MAX_MESSAGE_CHARS, ToolErrorCode, check_tool_data
from fermata.remote_tools.pinned_tools import RemoteToolHandler, load_definitions, read_tool_secrets
from fermata.remote_tools.tool_definition import ToolDefinition
from fermata.signed_requests.signature import SignatureRefused, verify_request
from fermata.tools.calls.pipeline import apply_result_policy
from fermata.tools.tool import Tool
from fermata.turns.answer.resume_turn import resume_turn
from fermata.turns.answer.submit_tool_result import MAX_COMMIT_ATTEMPTS, ToolRequestGone
from fermata.turns.await_remote_results import find_remote_call, keep_early_result
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.pause import (
    Pause,
    build_pause_key,
    hash_result,
    pause_from_item,
    round_from_request_id,
    store_pause_version,
)
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import PauseChanged, RoundCommit, write_round_commit
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_log import StaleState, TurnEnded, TurnLog
from fermata.turns.turn_toolset import open_turn_toolset


class ResultUnfitting(Unprocessable):
    """The data of a result break the tool's output schema. The model reads so, and the call takes no other result."""

    code = ToolErrorCode.INVALID_OUTPUT.value

    def __init__(self, violation: str) -> None:
        super().__init__(f"{violation} The model was told that the call failed, and it takes no other result.")


@value_dataclass(frozen=True)
class RemoteResult:
    """A result as a tool has sent it: `data`, or a failure."""

    tenant: str
    bridge_id: str
    request_id: str
    data: Any = None
    error: str | None = None
    is_retryable: bool = False

    @property
    def result_hash(self) -> str:
        """Identifies the same result sent again."""
        return hash_result({"data": self.data, "error": self.error, "retryable": self.is_retryable})


def submit_remote_result(resources: Resources, result: RemoteResult, headers: Mapping[str, str], body: bytes) -> None:
    """Commit a result and resume the turn. The same result again changes nothing.

    A result that comes before the round knows that it has to wait is kept with its call.

    Args:
        result: What the body says.
        headers: Of the request, with lower-case names.
        body: The body that is signed.

    Raises:
        Unauthorized: The tool that was called has not signed this, or not lately. It is also raised where there is no
            such call, so that nobody learns which calls there are.
        ToolRequestGone: The call is not open any more.
        Conflict: The call was answered with another result.
        ResultUnfitting: The data break the tool's output schema. The call is answered with that failure.
        ServiceUnavailable: Too many writers at once. The tool should repeat.
    """
    for _ in range(MAX_COMMIT_ATTEMPTS):
        turn, pause = _load_rows(resources, result)
        call = find_remote_call(pause, result.request_id)
        tool, definition = _find_tool_of_call(resources, turn, call)
        _verify(resources, definition, headers, body)
        assert call is not None
        try:
            output = _accept(resources, pause, call, tool, definition, result)
        except (PauseChanged, StaleState):
            continue
        except TurnEnded:
            raise ToolRequestGone from None
        _require_fitting(output)
        return
    raise ServiceUnavailable("This turn is very busy. Send the same result again.", retry_after=1)


def _load_rows(resources: Resources, result: RemoteResult) -> tuple[Turn, Pause]:
    round_ = round_from_request_id(result.request_id)
    if round_ is None or not is_valid_id(result.bridge_id) or not is_valid_id(result.tenant):
        raise _refused("unknown_call")
    pk = build_turn_pk(result.tenant, result.bridge_id)
    keys = [(pk, "turn"), (pk, build_pause_key(round_))]
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys)
    turn = turn_from_item(items.get(keys[0]), resources.clock.time())
    pause_item = items.get(keys[1])
    if turn is None or pause_item is None:
        raise _refused("unknown_call")
    return turn, pause_from_item(resources, pause_item)


def _find_tool_of_call(resources: Resources, turn: Turn, call: RoundCall | None) -> tuple[Tool, ToolDefinition]:
    tool = open_turn_toolset(resources, turn).find_tool(call.tool_name) if call else None
    if tool is None or not isinstance(tool.handler, RemoteToolHandler):
        raise _refused("unknown_call")
    definitions = load_definitions(resources, turn.tenant, turn.remote_tools)
    return tool, definitions[tool.handler.definition]


def _verify(resources: Resources, definition: ToolDefinition, headers: Mapping[str, str], body: bytes) -> None:
    secrets = read_tool_secrets(resources, definition)
    if secrets is None:
        raise _refused("sealed")
    try:
        verify_request(secrets.signing_secrets, headers, resources.clock.time(), body)
    except SignatureRefused as refusal:
        raise _refused(refusal.reason) from None


def _refused(reason: str) -> Unauthorized:
    return Unauthorized("Unauthorized: no tool that was called has signed this.", reason=reason)


def _accept(
    resources: Resources,
    pause: Pause,
    call: RoundCall,
    tool: Tool,
    definition: ToolDefinition,
    result: RemoteResult,
) -> ToolOutput:
    """Store a result, and return what the model reads of it."""
    output = apply_result_policy(tool, _build_output(definition, result))
    if call.answer_hash:
        if call.answer_hash != result.result_hash:
            raise Conflict("This call was already answered with a different result.")
        if call.is_done:
            resume_turn(resources, pause)
        return output
    if call.runner != "server" or call.state not in ("waiting", "started", "requested"):
        raise ToolRequestGone
    if call.state != "requested":
        store_pause_version(resources, keep_early_result(pause, call, output, result.result_hash))
        return output
    outputs = {call.effect_key: (output, result.result_hash)}
    transition = apply_outputs(pause, outputs, now=resources.clock.time(), nonce=new_id(12))
    log = TurnLog(resources, pause.partition, pause.last_entry_number, pause.next_number, pause.turn_state)
    committed = write_round_commit(resources, log, RoundCommit.for_pause(pause, transition))
    if committed.pause:
        resume_turn(resources, committed.pause)
    return output


def _require_fitting(output: ToolOutput) -> None:
    if output.execution is not None and output.execution.code == ToolErrorCode.INVALID_OUTPUT:
        raise ResultUnfitting(output.error or "")


def _build_output(definition: ToolDefinition, result: RemoteResult) -> ToolOutput:
    execution = ToolExecution(latency_ms=0, attempts=1)
    if result.error is None:
        return check_tool_data(definition.parsed_manifest, result.data, execution)
    failed = execution.model_copy(update={"code": "tool_execution_failed", "retryable": result.is_retryable})
    return ToolOutput(ok=False, error=result.error[:MAX_MESSAGE_CHARS] or "It failed.", execution=failed)
