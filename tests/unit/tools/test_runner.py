"""A tool that runs on our side: in time, again where that is safe, never with an exception."""

import logging
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.host_timeouts import HOST_RETRY_POLICY
from fermata.tools.tool import Execution, Tool, ToolContext, ToolFailure, ToolRetryPolicy, TransientToolFailure
from tests.unit.tools.builders import EchoInput, make_call, make_context, make_tool, make_toolset


def ready(tool: Tool, **arguments: Any) -> AdmittedCall:
    outcome = admit_call(make_toolset(tool), make_call(arguments=arguments), make_context())
    assert isinstance(outcome, AdmittedCall)
    return outcome


def does(work: Callable[[], object], **changes: Any) -> Tool:
    return make_tool(handler=lambda given, context: work(), **changes)


class Script:
    """Does one thing after another: raises exceptions, returns the rest."""

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
    assert run_tool(ready(make_tool(), text="hi"), make_context()) == ToolOutput.success({"text": "hi"})
    assert run_tool(ready(does(lambda: None)), make_context()) == ToolOutput.success(None)


def test_an_output_is_taken_as_it_is() -> None:
    assert run_tool(ready(does(lambda: ToolOutput.failure("no"))), make_context()) == ToolOutput.failure("no")
    assert run_tool(ready(does(lambda: {"ok": False, "error": "no"})), make_context()) == ToolOutput.failure("no")


def test_the_function_is_given_its_input_and_the_context() -> None:
    seen: list[Any] = []

    def note(given: EchoInput, where: ToolContext) -> None:
        seen.append((given.text, where.tenant, where.effect_key, where.snapshot))

    run_tool(ready(make_tool(handler=note), text="hi"), make_context(effect_key="t1/1/c1", snapshot={"page": 1}))
    assert seen == [("hi", "tenant-1", "t1/1/c1", {"page": 1})]


def test_a_deliberate_failure_is_told_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert run_tool(ready(does(Script(ToolFailure("No such table.")))), make_context()) == ToolOutput.failure(
        "No such table."
    )
    assert caplog.records == []


def test_a_bug_is_told_by_its_message_and_logged_for_us(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        output = run_tool(ready(does(Script(ValueError("bad row"))), text="secret"), make_context(effect_key="t1/1/c1"))
    assert output == ToolOutput.failure("bad row")
    (record,) = caplog.records
    assert record.exc_info
    assert "secret" not in caplog.text


def test_data_that_is_not_json_is_a_bug_of_its_tool(caplog: pytest.LogCaptureFixture) -> None:
    output = run_tool(ready(does(lambda: {"at": threading.Event()})), make_context())
    assert not output.ok
    assert "not JSON serializable" in (output.error or "")
    assert caplog.records


def test_an_exception_without_a_message_is_told_by_its_name() -> None:
    assert run_tool(ready(does(Script(RuntimeError()))), make_context()) == ToolOutput.failure("RuntimeError")


def test_a_tool_that_takes_too_long_is_left_behind_and_nobody_hangs() -> None:
    release, left = threading.Event(), threading.Event()

    def stuck() -> None:
        release.wait(30)
        left.set()

    output = run_tool(ready(does(stuck, timeout_seconds=0.05, idempotent=True)), make_context())
    assert output == ToolOutput.failure("Tool echo did not finish within 0.05 seconds.")
    assert not left.is_set()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "tool-echo")
    release.set()
    assert left.wait(30)


def test_after_a_timeout_the_model_is_told_when_the_effect_is_in_doubt() -> None:
    release = threading.Event()
    output = run_tool(ready(does(lambda: release.wait(30))), make_context(), default_seconds=0.05)
    release.set()
    assert output.error is not None
    assert output.error.endswith("Whether it took effect is unknown: check before repeating it.")


@pytest.mark.parametrize("failure", [TransientToolFailure("busy"), ConnectionError("reset"), TimeoutError("slow")])
def test_an_idempotent_tool_is_tried_again_after_a_transient_failure(failure: Exception) -> None:
    script, waits = Script(failure, failure, "there"), list[float]()
    tool = does(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=3, backoff_seconds=0.2))
    assert run_tool(ready(tool), make_context(), sleep=waits.append) == ToolOutput.success("there")
    assert waits == [0.2, 0.4]


@pytest.mark.parametrize(("each", "attempts"), [(0.5, 3), (2.0, 2), (2.6, 1), (9.0, 1)])
def test_no_attempt_begins_later_than_the_tool_says(each: float, attempts: int) -> None:
    """So all of them together have an end, however slowly each one fails."""
    now = [100.0]

    def fails_slowly() -> None:
        now[0] += each
        raise TransientToolFailure("busy")

    def sleep(seconds: float) -> None:
        now[0] += seconds

    tool = does(fails_slowly, idempotent=True, retry=HOST_RETRY_POLICY)
    assert run_tool(ready(tool), make_context(), sleep=sleep, clock=lambda: now[0]) == ToolOutput.failure("busy")
    waits = sum(HOST_RETRY_POLICY.backoff_seconds * attempt for attempt in range(1, attempts))
    assert now[0] == pytest.approx(100 + attempts * each + waits)
    assert now[0] - 100 <= HOST_RETRY_POLICY.within_seconds + each


def test_when_every_attempt_fails_the_last_reason_is_told() -> None:
    script = Script(TransientToolFailure("first"), TransientToolFailure("second"))
    tool = does(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=2))
    assert run_tool(ready(tool), make_context()) == ToolOutput.failure("second")


def test_a_timeout_the_tool_met_itself_keeps_its_own_words() -> None:
    tool = does(Script(TimeoutError("The index did not answer.")))
    assert run_tool(ready(tool), make_context()) == ToolOutput.failure("The index did not answer.")


def test_a_tool_that_is_not_idempotent_is_never_tried_again() -> None:
    script = Script(TransientToolFailure("busy"), "never")
    assert run_tool(ready(does(script, retry=ToolRetryPolicy(max_attempts=3))), make_context()) == ToolOutput.failure(
        "busy"
    )
    assert script.calls == 1


@pytest.mark.parametrize("first", [ToolFailure("no"), ValueError("no"), ToolOutput.failure("no")])
def test_a_failure_that_would_only_come_again_is_not_retried(first: Any) -> None:
    script = Script(first, "never")
    tool = does(script, idempotent=True, retry=ToolRetryPolicy(max_attempts=3))
    assert run_tool(ready(tool), make_context()) == ToolOutput.failure("no")
    assert script.calls == 1


def test_data_that_breaks_the_output_schema_is_a_failure() -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]}
    tool = does(lambda: {"items": "none"}, output_schema=schema)
    told = 'Tool echo returned unexpected data: items: Expected array, got "none".'
    assert run_tool(ready(tool), make_context()) == ToolOutput.failure(told)
    assert run_tool(ready(does(lambda: {"items": []}, output_schema=schema)), make_context()).ok


def test_a_browser_tool_cannot_be_run_here() -> None:
    tool = make_tool(execution=Execution.BROWSER, handler=None)
    assert run_tool(ready(tool), make_context()) == ToolOutput.failure("Tool echo runs in the browser, not here.")


def test_the_callers_context_variables_are_seen_by_the_tool() -> None:
    request: ContextVar[str] = ContextVar("request")
    request.set("r1")
    assert run_tool(ready(does(request.get)), make_context()) == ToolOutput.success("r1")
