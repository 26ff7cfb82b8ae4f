"""Run a server tool with a timeout and retries; every outcome, also an exception, becomes a ToolOutput."""

import logging
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fermata.domain.json_shortening import count_json_chars
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, get_timeout_seconds, parse_tool_output
from fermata.tools.schema.validation import iter_schema_errors
from fermata.tools.tool import Tool, ToolContext, ToolFailure, TransientToolFailure

_logger = logging.getLogger(__name__)

DEFAULT_TOOL_TIMEOUT_SECONDS = 30.0
_TRANSIENT_ERRORS = (TransientToolFailure, TimeoutError, ConnectionError)


class StartedThread(Protocol):
    """The thread of one attempt."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, at most `timeout` seconds."""


class ToolClock(Protocol):
    """What running a tool needs of the process's clock (`fermata.aws.clock.Clock`)."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Block this thread for a number of seconds."""

    def start_thread(self, target: Callable[[], object], name: str) -> StartedThread:
        """Start a daemon thread."""


class _ToolTimeout(TimeoutError):
    """The handler did not return in time."""


def run_tool(
    admitted: AdmittedCall,
    context: ToolContext,
    *,
    clock: ToolClock,
    default_seconds: float = DEFAULT_TOOL_TIMEOUT_SECONDS,
) -> ToolOutput:
    """Run an admitted call and return its outcome; nothing is raised.

    A transient failure is retried by the tool's retry policy. A tool that is not idempotent is tried only once.

    Args:
        admitted: The call.
        context: What the handler receives besides its input.
        clock: Runs the handler's thread, and waits between attempts.
        default_seconds: The timeout of one attempt of a tool that has no `timeout_seconds`.
    """
    retry = admitted.tool.retry
    max_attempts = retry.max_attempts if admitted.tool.idempotent else 1
    started_at = clock.monotonic()
    attempt = 0
    while True:
        attempt += 1
        try:
            return _attempt(admitted, context, default_seconds, clock)
        except _TRANSIENT_ERRORS as error:
            wait = retry.backoff_seconds * attempt
            if attempt >= max_attempts or clock.monotonic() - started_at + wait > retry.within_seconds:
                return ToolOutput.failure(_describe_error(error))
        clock.sleep(wait)


def _attempt(admitted: AdmittedCall, context: ToolContext, default_seconds: float, clock: ToolClock) -> ToolOutput:
    """Try once. Transient errors are raised; others are returned for the model, and unexpected ones also logged."""
    tool = admitted.tool
    handler = tool.handler
    if handler is None:
        return ToolOutput.failure(f"Tool {tool.name} runs in the browser, not here.")
    timeout_seconds = get_timeout_seconds(tool, default_seconds)
    try:
        result = _run_with_timeout(tool, timeout_seconds, lambda: handler(admitted.tool_input, context), clock)
        output = parse_tool_output(result)
        count_json_chars(output.data)  # raises if the data is not JSON, so that the error names this tool
        return _check_output_schema(tool, output)
    except _TRANSIENT_ERRORS:
        raise
    except ToolFailure as failure:
        return ToolOutput.failure(_describe_error(failure))
    except Exception as error:
        _logger.exception("tool handler raised", extra={"tool": tool.name, "effect_key": context.effect_key})
        return ToolOutput.failure(_describe_error(error))


@dataclass
class _Outcome:
    """What a handler returned or raised, once it has."""

    is_done: bool = False
    result: object = None
    error: BaseException | None = None

    def run(self, work: Callable[[], object]) -> None:
        try:
            self.result = work()
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            self.error = error
        self.is_done = True


def _run_with_timeout(tool: Tool, seconds: float, work: Callable[[], object], clock: ToolClock) -> object:
    """Run `work` in a thread. A thread cannot be stopped; as a daemon it does not keep the process alive either."""
    outcome = _Outcome()
    run_in_context = partial(copy_context().run, outcome.run, work)
    clock.start_thread(run_in_context, f"tool-{tool.name}").join(seconds)
    if not outcome.is_done:
        doubt = "" if tool.idempotent else " Whether it took effect is unknown: check before repeating it."
        raise _ToolTimeout(f"Tool {tool.name} did not finish within {seconds:g} seconds.{doubt}")
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def _check_output_schema(tool: Tool, output: ToolOutput) -> ToolOutput:
    """Replace data that breaks the tool's output schema by a failure: consumers of the data rely on the schema."""
    if not output.ok or tool.output_schema is None:
        return output
    error = next(iter_schema_errors(tool.output_schema, output.data), None)
    return output if error is None else ToolOutput.failure(f"Tool {tool.name} returned unexpected data: {error}.")


def _describe_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
