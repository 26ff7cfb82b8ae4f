"""Execute a tool with a manifest: checks in a fixed order, attempts, and an envelope that says how it went.

The order is: tool, approval of a write, automatic reads, input schema, an earlier result of the same call, attempts,
output schema. Only failures that may pass are tried again, after a wait with a random part (decision 0327).
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.remote_tools.tool_manifest import ToolManifest, normalize_tool_name
from fermata.tools.schema.validate_manifest_value import find_schema_violation

MAX_MESSAGE_CHARS = 240
MAX_TOTAL_SECONDS = 150.0
"""No attempt starts later than this after the first."""
MIN_JITTER_SECONDS = 0.1
_UNSURE = " Whether it took effect is unknown: check before repeating it."


class ToolErrorCode(StrEnum):
    """Why a call failed."""

    NOT_FOUND = "tool_not_found"
    REQUIRES_APPROVAL = "tool_requires_approval"
    AUTO_RUN_DISABLED = "tool_auto_run_disabled"
    INVALID_INPUT = "invalid_tool_input"
    INVALID_OUTPUT = "invalid_tool_output"
    EXECUTION_FAILED = "tool_execution_failed"


class AttemptFailed(Exception):
    """One attempt failed.

    Attributes:
        is_transient: Whether the same request may succeed later.
        was_refused: Whether it is certain that nothing was done, so that any tool may be tried again.
        retry_after: Seconds that the server asks to wait.
        is_unanswered: Whether the request may have been carried out, and no answer that can be read says so.
    """

    def __init__(
        self,
        message: str,
        *,
        is_transient: bool = False,
        was_refused: bool = False,
        retry_after: float | None = None,
        is_unanswered: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.is_transient = is_transient
        self.was_refused = was_refused
        self.retry_after = retry_after
        self.is_unanswered = is_unanswered


@value_dataclass(frozen=True)
class ResultComesLater:
    """What an attempt returns whose tool will send its result later."""


@value_dataclass(frozen=True)
class ManifestTool:
    """A tool that can be executed: its manifest, and the function that makes one attempt with valid arguments.

    The function returns the data or `ResultComesLater`, or raises `AttemptFailed`.
    """

    manifest: ToolManifest
    attempt: Callable[[Mapping[str, Any]], Any]


@value_dataclass(frozen=True)
class ConsentPolicy:
    """Which calls run without being asked for."""

    runs_reads: bool = True
    requires_approval_for_write: bool = True


DEFAULT_POLICY = ConsentPolicy()
APPROVED = ConsentPolicy(requires_approval_for_write=False)
"""The policy of a call that has passed the gate in front of all runners."""


@value_dataclass(frozen=True)
class ExecutionClock:
    """The time of an execution. `sleep` may raise AttemptFailed when the turn has ended meanwhile."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    get_jitter: Callable[[], float] = random.random


@dataclass
class EarlierResults:
    """Results of idempotent calls of one trace, by tool and input. A turn keeps them for its own calls only."""

    data_by_call: dict[str, Any] = field(default_factory=dict)

    def find(self, manifest: ToolManifest, arguments: Any) -> Any:
        """Return the data in a list, or None for a call that was not made yet, or may have another result now."""
        key = build_call_key(manifest.name, arguments)
        return [self.data_by_call[key]] if manifest.idempotent and key in self.data_by_call else None

    def add(self, manifest: ToolManifest, arguments: Any, data: Any) -> None:
        """Keep the result of a call, if its tool is idempotent.

        Args:
            manifest: The tool's.
            arguments: What the tool was called with.
            data: What it returned.
        """
        if manifest.idempotent:
            self.data_by_call[build_call_key(manifest.name, arguments)] = data


def build_call_key(name: str, arguments: Any) -> str:
    """Return what two calls have in common that ask for the same."""
    return f"{normalize_tool_name(name)} {json.dumps(arguments, sort_keys=True, separators=(',', ':'))}"


def find_manifest_tool(tools: Mapping[str, ManifestTool], name: str) -> ManifestTool | None:
    """Return the enabled tool of a name.

    Args:
        tools: By `normalize_tool_name`.
        name: Any spelling of the name.
    """
    tool = tools.get(normalize_tool_name(name))
    return tool if tool is not None and tool.manifest.enabled else None


def execute_tool(
    tool: ManifestTool | None,
    arguments: Any,
    clock: ExecutionClock,
    *,
    name: str = "",
    policy: ConsentPolicy = DEFAULT_POLICY,
    earlier: EarlierResults | None = None,
) -> ToolOutput | ResultComesLater:
    """Check a call and execute it; nothing is raised.

    Args:
        tool: The tool; None for one that does not exist or is disabled.
        arguments: The unchecked input.
        clock: Time and randomness.
        name: What the caller called the tool, for the message.
        policy: Which calls need nobody's consent.
        earlier: The results of the calls before, which an idempotent call repeats.
    """
    started_at = clock.monotonic()
    refusal = _find_refusal(tool, arguments, name, policy)
    if refusal is not None or tool is None:
        return refusal or _fail(ToolErrorCode.NOT_FOUND, f"Unknown tool: {name}.")
    known = earlier.find(tool.manifest, arguments) if earlier else None
    if known is not None:
        return ToolOutput(ok=True, data=known[0], execution=ToolExecution(latency_ms=0, attempts=1))
    outcome = _attempt_until_final(tool, arguments, clock, started_at)
    if earlier and isinstance(outcome, ToolOutput) and outcome.ok:
        earlier.add(tool.manifest, arguments, outcome.data)
    return outcome


def _find_refusal(tool: ManifestTool | None, arguments: Any, name: str, policy: ConsentPolicy) -> ToolOutput | None:
    if tool is None or not tool.manifest.enabled:
        return _fail(ToolErrorCode.NOT_FOUND, f"Unknown tool: {name or 'without a name'}.")
    manifest = tool.manifest
    if manifest.capability == "write" and policy.requires_approval_for_write:
        return _fail(ToolErrorCode.REQUIRES_APPROVAL, f"{manifest.name} changes something: a person must approve it.")
    if manifest.capability == "read" and not policy.runs_reads:
        return _fail(ToolErrorCode.AUTO_RUN_DISABLED, f"{manifest.name} is not run without being asked for.")
    return check_tool_input(manifest, arguments)


def check_tool_input(manifest: ToolManifest, arguments: Any) -> ToolOutput | None:
    """Return the failure of arguments that break the tool's input schema, or None."""
    violation = find_schema_violation({"type": "object"} | manifest.input_schema, arguments)
    return violation and _fail(ToolErrorCode.INVALID_INPUT, f"Invalid input for {manifest.name}: {violation}.")


def check_tool_data(manifest: ToolManifest, data: Any, execution: ToolExecution) -> ToolOutput:
    """Return the output of a call that brought `data`, or the failure of data that break the output schema.

    Args:
        manifest: Of the tool.
        data: What it has returned.
        execution: How the call went.
    """
    violation = find_schema_violation(manifest.output_schema, data)
    if violation is None:
        return ToolOutput(ok=True, data=data, execution=execution)
    message = f"{manifest.name} returned what its output schema does not allow: {violation}."
    return _fail(ToolErrorCode.INVALID_OUTPUT, message, execution)


def _attempt_until_final(
    tool: ManifestTool, arguments: Any, clock: ExecutionClock, started_at: float
) -> ToolOutput | ResultComesLater:
    manifest, attempts = tool.manifest, 0
    while True:
        attempts += 1
        try:
            data = tool.attempt(arguments)
        except AttemptFailed as failure:
            wait = _get_wait(manifest, failure, attempts, clock)
            if wait is None or clock.monotonic() - started_at + wait > MAX_TOTAL_SECONDS:
                return _describe_failure(manifest, failure, _measure(clock, started_at, attempts))
            try:
                clock.sleep(wait)
            except AttemptFailed as stopped:
                return _describe_failure(manifest, stopped, _measure(clock, started_at, attempts))
            continue
        if isinstance(data, ResultComesLater):
            return data
        return check_tool_data(manifest, data, _measure(clock, started_at, attempts))


def _get_wait(manifest: ToolManifest, failure: AttemptFailed, attempts: int, clock: ExecutionClock) -> float | None:
    """Return the seconds before the next attempt, or None if there is none.

    A tool that is not idempotent is tried again only after a refusal, because anything else may have had its effect.
    """
    is_final = attempts >= manifest.retry_policy.max_attempts or not failure.is_transient
    if is_final or not (manifest.idempotent or failure.was_refused):
        return None
    backoff = manifest.retry_policy.backoff_ms / 1000
    own_wait = backoff * attempts + clock.get_jitter() * max(backoff, MIN_JITTER_SECONDS)
    return max(own_wait, failure.retry_after or 0.0)


def _measure(clock: ExecutionClock, started_at: float, attempts: int) -> ToolExecution:
    return ToolExecution(latency_ms=max(0, round((clock.monotonic() - started_at) * 1000)), attempts=attempts)


def _describe_failure(manifest: ToolManifest, failure: AttemptFailed, execution: ToolExecution) -> ToolOutput:
    is_sure = manifest.idempotent or failure.was_refused or not failure.is_transient
    message = failure.message[:MAX_MESSAGE_CHARS] + ("" if is_sure else _UNSURE)
    return _fail(ToolErrorCode.EXECUTION_FAILED, message, execution, retryable=failure.is_transient)


def _fail(
    code: ToolErrorCode, message: str, execution: ToolExecution | None = None, *, retryable: bool = False
) -> ToolOutput:
    measured = execution or ToolExecution()
    told = measured.model_copy(update={"code": code.value, "retryable": retryable})
    return ToolOutput(ok=False, error=message, execution=told)


def build_envelope(output: ToolOutput) -> dict[str, Any]:
    """Return an output as the envelope `{ok, data?, error?, latencyMs, attempts}`."""
    execution = output.execution or ToolExecution()
    envelope: dict[str, Any] = {"ok": output.ok}
    if output.ok:
        envelope["data"] = output.data
    else:
        code = execution.code or ToolErrorCode.EXECUTION_FAILED.value
        envelope["error"] = {"code": code, "message": output.error or "", "retryable": bool(execution.retryable)}
    return envelope | {"latencyMs": execution.latency_ms, "attempts": execution.attempts}
