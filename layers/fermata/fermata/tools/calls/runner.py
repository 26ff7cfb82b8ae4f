"""Carries a tool out on our side: in time, again where that is safe, and never with an exception."""

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
_WORTH_A_RETRY = (TransientToolFailure, TimeoutError, ConnectionError)


class _TookTooLong(TimeoutError):
    pass


def run_tool(
    admitted: AdmittedCall,
    context: ToolContext,
    *,
    default_seconds: float = DEFAULT_TOOL_TIMEOUT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ToolOutput:
    """What the tool came to. `timeout_seconds` is per attempt; a tool that is not idempotent has one attempt only."""
    tool, retry, begun, attempt = admitted.tool, admitted.tool.retry, clock(), 0
    while True:
        attempt += 1
        try:
            return _attempt(admitted, context, default_seconds)
        except _WORTH_A_RETRY as failure:
            wait = retry.backoff_seconds * attempt
            is_last = not tool.idempotent or attempt >= retry.max_attempts
            if is_last or clock() - begun + wait > retry.within_seconds:
                return ToolOutput.failure(_sentence(failure))
        sleep(wait)


def _attempt(admitted: AdmittedCall, context: ToolContext, default_seconds: float) -> ToolOutput:
    """Transient failures go up, to be tried again; every other one is the model's to read, and a bug also ours."""
    tool, function = admitted.tool, admitted.tool.run
    if function is None:
        return ToolOutput.failure(f"Tool {tool.name} runs in the browser, not here.")
    try:
        result = _within(
            tool, get_timeout_seconds(tool, default_seconds), lambda: function(admitted.tool_input, context)
        )
        output = parse_tool_output(result)
        count_json_chars(output.data)  # raises here, in the handler's name, where data is not JSON
        return _verified(tool, output)
    except _WORTH_A_RETRY:
        raise
    except ToolFailure as failure:
        return ToolOutput.failure(_sentence(failure))
    except Exception as bug:
        _logger.exception("tool handler raised", extra={"tool": tool.name, "effect_key": context.effect_key})
        return ToolOutput.failure(_sentence(bug))


def _within(tool: Tool, seconds: float, work: Callable[[], object]) -> object:
    """A thread cannot be stopped, only left behind: it is a daemon, so that not even the end of the process waits."""
    outcome: Future[object] = Future()
    Thread(target=copy_context().run, args=(_settle, outcome, work), name=f"tool-{tool.name}", daemon=True).start()
    try:
        return outcome.result(timeout=seconds)
    except TimeoutError:
        if outcome.done():
            return outcome.result()
        doubt = "" if tool.idempotent else " Whether it took effect is unknown: check before repeating it."
        raise _TookTooLong(f"Tool {tool.name} did not finish within {seconds:g} seconds.{doubt}") from None


def _settle(outcome: Future[Any], work: Callable[[], object]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as failure:  # noqa: BLE001 - nothing is swallowed: it is raised where the result is awaited
        outcome.set_exception(failure)


def _verified(tool: Tool, output: ToolOutput) -> ToolOutput:
    """An output schema is a promise to whoever builds on the data, so a broken one is a failure."""
    if not output.ok or tool.output_schema is None:
        return output
    fault = next(iter_schema_errors(tool.output_schema, output.data), None)
    return output if fault is None else ToolOutput.failure(f"Tool {tool.name} returned unexpected data: {fault}.")


def _sentence(failure: BaseException) -> str:
    return str(failure) or type(failure).__name__
