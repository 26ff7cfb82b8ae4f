"""A server tool runs with a timeout and retries, and never raises."""

import logging
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from fermata.aws.clock import Clock, JoinableThread
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.host_timeouts import HOST_RETRY_POLICY
from fermata.tools.tool import Execution, Tool, ToolContext, ToolFailure, ToolRetryPolicy, TransientToolFailure
from tests.resources import TestClock
from tests.unit.tools.builders import (
    EchoInput,
    SleeplessClock,
    make_call,
    make_context,
    make_tool,
    make_toolset,
    run_tool,
)


def admit(tool: Tool, **arguments: Any) -> AdmittedCall:
    outcome = admit_call(make_toolset(tool), make_call(arguments=arguments), make_context())
    assert isinstance(outcome, AdmittedCall)
    return outcome


def make_tool_from(work: Callable[[], object], **changes: Any) -> Tool:
    return make_tool(handler=lambda tool_input, context: work(), **changes)


class ScriptedSteps:
    """A handler that takes one step per call: it raises exceptions and returns other values."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.calls = 0

    def __call__(self) -> object:
        step = self.steps[self.calls]
        self.calls += 1
        if isinstance(step, BaseException):
            raise step
        return step


def test_plain_data_counts_as_success() -> None:
    assert run_tool(admit(make_tool(), text="hi"), make_context()) == ToolOutput.success({"text": "hi"})
    assert run_tool(admit(make_tool_from(lambda: None)), make_context()) == ToolOutput.success(None)


def test_a_returned_output_is_not_changed() -> None:
    assert run_tool(admit(make_tool_from(lambda: ToolOutput.failure("no"))), make_context()) == ToolOutput.failure("no")
    assert run_tool(admit(make_tool_from(lambda: {"ok": False, "error": "no"})), make_context()) == ToolOutput.failure(
        "no"
    )


def test_the_handler_receives_its_input_and_the_context() -> None:
    seen: list[Any] = []

    def note(tool_input: EchoInput, context: ToolContext) -> None:
        seen.append((tool_input.text, context.tenant, context.effect_key, context.snapshot))

    run_tool(admit(make_tool(handler=note), text="hi"), make_context(effect_key="t1/1/c1", snapshot={"page": 1}))
    assert seen == [("hi", "tenant-1", "t1/1/c1", {"page": 1})]


def test_a_tool_failure_is_returned_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert run_tool(
        admit(make_tool_from(ScriptedSteps(ToolFailure("No such table.")))), make_context()
    ) == ToolOutput.failure("No such table.")
    assert caplog.records == []


def test_an_unexpected_exception_is_returned_by_its_message_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        output = run_tool(
            admit(make_tool_from(ScriptedSteps(ValueError("bad row"))), text="secret"),
            make_context(effect_key="t1/1/c1"),
        )
    assert output == ToolOutput.failure("bad row")
    (record,) = caplog.records
    assert record.exc_info
    assert "secret" not in caplog.text


def test_data_that_is_not_json_is_an_error_of_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    output = run_tool(admit(make_tool_from(lambda: {"at": threading.Event()})), make_context())
    assert not output.ok
    assert "not JSON serializable" in (output.error or "")
    assert caplog.records


def test_an_exception_without_a_message_is_returned_by_its_name() -> None:
    assert run_tool(admit(make_tool_from(ScriptedSteps(RuntimeError()))), make_context()) == ToolOutput.failure(
        "RuntimeError"
    )


def test_a_tool_that_takes_too_long_is_abandoned_in_a_daemon_thread() -> None:
    release = threading.Event()
    ended = threading.Event()

    def stuck() -> None:
        release.wait(30)
        ended.set()

    output = run_tool(admit(make_tool_from(stuck, timeout_seconds=0.05, idempotent=True)), make_context())
    assert output == ToolOutput.failure("Tool echo did not finish within 0.05 seconds.")
    assert not ended.is_set()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "tool-echo")
    release.set()
    assert ended.wait(30)


def test_after_a_timeout_a_note_says_that_the_effect_is_unknown() -> None:
    release = threading.Event()
    output = run_tool(admit(make_tool_from(lambda: release.wait(30))), make_context(), default_seconds=0.05)
    release.set()
    assert output.error is not None
    assert output.error.endswith("Whether it took effect is unknown: check before repeating it.")


@pytest.mark.parametrize("failure", [TransientToolFailure("busy"), ConnectionError("reset"), TimeoutError("slow")])
def test_an_idempotent_tool_is_retried_after_a_transient_failure(failure: Exception) -> None:
    script, clock = ScriptedSteps(failure, failure, "there"), SleeplessClock()
    tool = make_tool_from(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=3, backoff_seconds=0.2))
    assert run_tool(admit(tool), make_context(), clock=clock) == ToolOutput.success("there")
    assert clock.sleeps == [0.2, 0.4]


@pytest.mark.parametrize(("seconds_per_attempt", "attempts"), [(0.5, 3), (2.0, 2), (2.6, 1), (9.0, 1)])
def test_no_attempt_starts_later_than_the_retry_policy_allows(seconds_per_attempt: float, attempts: int) -> None:
    """All attempts together are bounded, even if each one fails slowly."""
    clock = TestClock(100.0)

    def fails_slowly() -> None:
        clock.sleep(seconds_per_attempt)
        raise TransientToolFailure("busy")

    tool = make_tool_from(fails_slowly, idempotent=True, retry=HOST_RETRY_POLICY)
    assert run_tool(admit(tool), make_context(), clock=clock) == ToolOutput.failure("busy")
    waits = sum(HOST_RETRY_POLICY.backoff_seconds * attempt for attempt in range(1, attempts))
    assert clock.now == pytest.approx(100 + attempts * seconds_per_attempt + waits)
    assert clock.now - 100 <= HOST_RETRY_POLICY.within_seconds + seconds_per_attempt


def test_the_last_reason_is_returned_if_every_attempt_fails() -> None:
    script = ScriptedSteps(TransientToolFailure("first"), TransientToolFailure("second"))
    tool = make_tool_from(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=2))
    assert run_tool(admit(tool), make_context()) == ToolOutput.failure("second")


def test_a_timeout_error_of_the_handler_keeps_its_message() -> None:
    tool = make_tool_from(ScriptedSteps(TimeoutError("The index did not answer.")))
    assert run_tool(admit(tool), make_context()) == ToolOutput.failure("The index did not answer.")


def test_a_tool_that_is_not_idempotent_is_never_retried() -> None:
    script = ScriptedSteps(TransientToolFailure("busy"), "never")
    assert run_tool(
        admit(make_tool_from(script, retry=ToolRetryPolicy(max_attempts=3))), make_context()
    ) == ToolOutput.failure("busy")
    assert script.calls == 1


@pytest.mark.parametrize("first", [ToolFailure("no"), ValueError("no"), ToolOutput.failure("no")])
def test_a_permanent_failure_is_not_retried(first: Any) -> None:
    script = ScriptedSteps(first, "never")
    tool = make_tool_from(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=3))
    assert run_tool(admit(tool), make_context()) == ToolOutput.failure("no")
    assert script.calls == 1


def test_data_that_breaks_the_output_schema_is_a_failure() -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}
    tool = make_tool_from(lambda: {"items": "none"}, output_schema=schema)
    error = 'Tool echo returned unexpected data: items: Expected array, got "none".'
    assert run_tool(admit(tool), make_context()) == ToolOutput.failure(error)
    assert run_tool(admit(make_tool_from(lambda: {"items": []}, output_schema=schema)), make_context()).ok


def test_a_browser_tool_cannot_be_run_on_the_server() -> None:
    tool = make_tool(execution=Execution.BROWSER, handler=None)
    assert run_tool(admit(tool), make_context()) == ToolOutput.failure("Tool echo runs in the browser, not here.")


def test_the_handler_sees_the_context_variables_of_the_caller() -> None:
    request: ContextVar[str] = ContextVar("request")
    request.set("r1")
    assert run_tool(admit(make_tool_from(request.get)), make_context()) == ToolOutput.success("r1")


def test_the_handler_runs_in_a_thread_of_the_clock() -> None:
    """So a simulation decides when it runs, and when its time is over."""
    names: list[str] = []

    class WatchedClock(Clock):
        def start_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
            names.append(name)
            return super().start_thread(target, name)

    assert run_tool(admit(make_tool(), text="hi"), make_context(), clock=WatchedClock()).ok
    assert names == ["tool-echo"]
