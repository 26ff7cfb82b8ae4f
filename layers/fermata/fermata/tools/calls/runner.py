"""Run a server tool with a timeout and retries; every outcome, also an exception, becomes a ToolOutput."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, get_timeout_seconds, parse_tool_output
from fermata.tools.calls.trimming import count_json_chars
from fermata.tools.schema.validation import iter_schema_errors
from fermata.tools.tool import Tool, ToolContext, ToolFailure, TransientToolFailure

_logger = logging.getLogger(__name__)

DEFAULT_TOOL_TIMEOUT_SECONDS = 30.0
_TRANSIENT_ERRORS = (TransientToolFailure, TimeoutError, ConnectionError)


class _ToolTimeout(TimeoutError):
    """The handler did not return in time."""


def run_tool(
    admitted: AdmittedCall,
    context: ToolContext,
    *,
    default_seconds: float = DEFAULT_TOOL_TIMEOUT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ToolOutput:
    """Run an admitted call and return its outcome; nothing is raised.

    A transient failure is retried by the tool's retry policy. A tool that is not idempotent is tried only once.

    Args:
        admitted: The call.
        context: What the handler receives besides its input.
        default_seconds: The timeout of one attempt of a tool that has no `timeout_seconds`.
        sleep: Waits between attempts.
        clock: A monotonic clock, in seconds.
    """
    retry = admitted.tool.retry
    max_attempts = retry.max_attempts if admitted.tool.idempotent else 1
    started_at = clock()
    attempt = 0
    while True:
        attempt += 1
        try:
            return _attempt(admitted, context, default_seconds)
        except _TRANSIENT_ERRORS as error:
            wait = retry.backoff_seconds * attempt
            if attempt >= max_attempts or clock() - started_at + wait > retry.within_seconds:
                return ToolOutput.failure(_describe_error(error))
        sleep(wait)


def _attempt(admitted: AdmittedCall, context: ToolContext, default_seconds: float) -> ToolOutput:
    """Try once. Transient errors are raised; others are returned for the model, and unexpected ones also logged."""
    tool = admitted.tool
    handler = tool.handler
    if handler is None:
        return ToolOutput.failure(f"Tool {tool.name} runs in the browser, not here.")
    timeout_seconds = get_timeout_seconds(tool, default_seconds)
    try:
        result = _run_with_timeout(tool, timeout_seconds, lambda: handler(admitted.tool_input, context))
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


def _run_with_timeout(tool: Tool, seconds: float, work: Callable[[], object]) -> object:
    """Run `work` in a thread. A thread cannot be stopped; as a daemon it does not keep the process alive either."""
    outcome: Future[object] = Future()
    Thread(target=copy_context().run, args=(_set_outcome, outcome, work), name=f"tool-{tool.name}", daemon=True).start()
    try:
        return outcome.result(timeout=seconds)
    except TimeoutError:
        if outcome.done():  # the handler itself raised TimeoutError, or ended at the last moment
            return outcome.result()
        doubt = "" if tool.idempotent else " Whether it took effect is unknown: check before repeating it."
        raise _ToolTimeout(f"Tool {tool.name} did not finish within {seconds:g} seconds.{doubt}") from None


def _set_outcome(outcome: Future[Any], work: Callable[[], object]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
        outcome.set_exception(error)


def _check_output_schema(tool: Tool, output: ToolOutput) -> ToolOutput:
    """Replace data that breaks the tool's output schema by a failure: consumers of the data rely on the schema."""
    if not output.ok or tool.output_schema is None:
        return output
    error = next(iter_schema_errors(tool.output_schema, output.data), None)
    return output if error is None else ToolOutput.failure(f"Tool {tool.name} returned unexpected data: {error}.")


def _describe_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
