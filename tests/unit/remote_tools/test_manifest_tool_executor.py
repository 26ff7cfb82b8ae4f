"""A tool with a manifest is executed in a fixed order, and its envelope says how it went."""

from collections.abc import Mapping
from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.remote_tools.manifest_tool_executor import (
    APPROVED,
    AttemptFailed,
    ConsentPolicy,
    EarlierResults,
    ManifestTool,
    ResultComesLater,
    build_envelope,
    execute_tool,
    find_manifest_tool,
)
from fermata.remote_tools.tool_manifest import normalize_tool_name
from tests.unit.remote_tools.manifests import ExecutionTime, make_manifest_tool
from tests.unit.remote_tools.test_validate_manifest_value import CLOSED_QUERY

TRANSIENT = AttemptFailed("it is busy", is_transient=True)


class ScriptedAttempts:
    """Attempts that fail as scripted, then return how often they were made."""

    def __init__(self, *failures: AttemptFailed) -> None:
        self.failures = list(failures)
        self.count = 0

    def __call__(self, _arguments: Mapping[str, Any]) -> Any:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"c": self.count}


def run(tool: ManifestTool | None, arguments: Any = None, time: ExecutionTime | None = None, **options: Any) -> Any:
    output = execute_tool(tool, {} if arguments is None else arguments, (time or ExecutionTime()).clock, **options)
    assert isinstance(output, ToolOutput)
    return build_envelope(output)


def error_of(envelope: dict[str, Any]) -> tuple[str, bool, int]:
    assert envelope["ok"] is False
    assert envelope["latencyMs"] >= 0
    return envelope["error"]["code"], envelope["error"]["retryable"], envelope["attempts"]


def test_an_unknown_tool_is_not_found() -> None:
    envelope = run(find_manifest_tool({}, "nope.none"), name="nope.none")
    assert error_of(envelope) == ("tool_not_found", False, 1)
    assert envelope["error"]["message"] == "Unknown tool: nope.none."


def test_a_disabled_tool_looks_unknown() -> None:
    attempts = ScriptedAttempts()
    tool = make_manifest_tool(attempts, enabled=False)
    assert find_manifest_tool({normalize_tool_name(tool.manifest.name): tool}, tool.manifest.name) is None
    assert error_of(run(tool)) == ("tool_not_found", False, 1)
    assert attempts.count == 0


def test_the_last_registration_of_a_name_wins_however_it_is_spelled() -> None:
    tools = {normalize_tool_name(name): make_manifest_tool(ScriptedAttempts(), name=name) for name in
             ("PIM.getProduct", "pim.getproduct")}  # fmt: skip
    found = find_manifest_tool(tools, " Pim.GetProduct ")
    assert len(tools) == 1
    assert found is not None
    assert found.manifest.name == "pim.getproduct"


def test_a_write_needs_approval_before_its_input_is_looked_at() -> None:
    attempts = ScriptedAttempts()
    tool = make_manifest_tool(attempts, capability="write", inputSchema=CLOSED_QUERY)
    assert error_of(run(tool, {"foo": 1})) == ("tool_requires_approval", False, 1)
    assert error_of(run(tool, {"foo": 1}, policy=APPROVED)) == ("invalid_tool_input", False, 1)
    assert run(tool, {"query": "m"}, policy=APPROVED)["data"] == {"c": 1}


def test_a_read_is_refused_where_reads_do_not_run_by_themselves() -> None:
    tool = make_manifest_tool(ScriptedAttempts())
    assert error_of(run(tool, policy=ConsentPolicy(runs_reads=False))) == ("tool_auto_run_disabled", False, 1)


def test_wrong_input_is_refused_with_its_path() -> None:
    envelope = run(make_manifest_tool(ScriptedAttempts(), inputSchema=CLOSED_QUERY), {"foo": 1})
    assert error_of(envelope) == ("invalid_tool_input", False, 1)
    assert "$.query" in envelope["error"]["message"]


@pytest.mark.parametrize("arguments", [[], "text", 5])
def test_input_is_an_object_whatever_the_schema_says(arguments: Any) -> None:
    assert error_of(run(make_manifest_tool(ScriptedAttempts(), inputSchema={}), arguments))[0] == "invalid_tool_input"


def test_wrong_output_is_not_asked_for_again() -> None:
    attempts = ScriptedAttempts()
    schema = {"type": "object", "required": ["items"]}
    tool = make_manifest_tool(attempts, outputSchema=schema, retryPolicy={"maxAttempts": 3})
    assert error_of(run(tool)) == ("invalid_tool_output", False, 1)
    assert attempts.count == 1


def test_transient_failures_are_tried_again_with_growing_waits() -> None:
    time = ExecutionTime()
    tool = make_manifest_tool(ScriptedAttempts(TRANSIENT, TRANSIENT), retryPolicy={"maxAttempts": 3, "backoffMs": 10})
    envelope = run(tool, time=time)
    assert envelope == {"ok": True, "data": {"c": 3}, "latencyMs": 30, "attempts": 3}
    assert time.sleeps == [0.01, 0.02]


def test_waits_have_a_random_part() -> None:
    time = ExecutionTime(jitter=0.5)
    run(make_manifest_tool(ScriptedAttempts(TRANSIENT), retryPolicy={"maxAttempts": 2, "backoffMs": 1000}), time=time)
    assert time.sleeps == [1.5]


def test_a_failure_that_may_pass_is_reported_as_retryable_after_the_last_attempt() -> None:
    tool = make_manifest_tool(ScriptedAttempts(TRANSIENT, TRANSIENT), retryPolicy={"maxAttempts": 2})
    assert error_of(run(tool)) == ("tool_execution_failed", True, 2)


def test_a_failure_that_does_not_pass_is_not_tried_again() -> None:
    tool = make_manifest_tool(ScriptedAttempts(AttemptFailed("no such product")), retryPolicy={"maxAttempts": 5})
    assert error_of(run(tool)) == ("tool_execution_failed", False, 1)


def test_a_tool_that_may_act_twice_is_tried_again_only_after_a_refusal() -> None:
    policy = {"maxAttempts": 3}
    unsure = run(make_manifest_tool(ScriptedAttempts(TRANSIENT), idempotent=False, retryPolicy=policy))
    refused = AttemptFailed("not now", is_transient=True, was_refused=True)
    sure = run(make_manifest_tool(ScriptedAttempts(refused), idempotent=False, retryPolicy=policy))
    assert error_of(unsure) == ("tool_execution_failed", True, 1)
    assert "check before repeating" in unsure["error"]["message"]
    assert (sure["data"], sure["attempts"]) == ({"c": 2}, 2)


def test_a_server_that_names_a_wait_is_obeyed_within_the_total_limit() -> None:
    short, long = (AttemptFailed("later", is_transient=True, retry_after=seconds) for seconds in (20.0, 1000.0))
    time = ExecutionTime()
    envelope = run(make_manifest_tool(ScriptedAttempts(short, long), retryPolicy={"maxAttempts": 3}), time=time)
    assert time.sleeps == [20.0]
    assert error_of(envelope) == ("tool_execution_failed", True, 2)


def test_messages_are_shortened() -> None:
    envelope = run(make_manifest_tool(ScriptedAttempts(AttemptFailed("x" * 1000))))
    assert len(envelope["error"]["message"]) == 240


def test_the_same_call_of_one_trace_is_answered_from_its_earlier_result() -> None:
    attempts = ScriptedAttempts()
    tool = make_manifest_tool(attempts)
    first_trace, second_trace = EarlierResults(), EarlierResults()
    data = [run(tool, earlier=trace)["data"] for trace in (first_trace, first_trace, second_trace)]
    assert data == [{"c": 1}, {"c": 1}, {"c": 2}]
    assert run(tool, {"sku": 1}, earlier=first_trace)["data"] == {"c": 3}


def test_a_tool_that_may_have_another_result_now_is_called_again() -> None:
    earlier = EarlierResults()
    tool = make_manifest_tool(ScriptedAttempts(), idempotent=False)
    assert [run(tool, earlier=earlier)["data"]["c"] for _ in range(2)] == [1, 2]


def test_a_failure_is_not_repeated_from_memory() -> None:
    earlier = EarlierResults()
    tool = make_manifest_tool(ScriptedAttempts(AttemptFailed("down")), retryPolicy={"maxAttempts": 1})
    assert not run(tool, earlier=earlier)["ok"]
    assert run(tool, earlier=earlier)["data"] == {"c": 2}


def test_an_attempt_may_say_that_its_answer_comes_later() -> None:
    tool = make_manifest_tool(lambda _arguments: ResultComesLater())
    assert isinstance(execute_tool(tool, {}, ExecutionTime().clock), ResultComesLater)
