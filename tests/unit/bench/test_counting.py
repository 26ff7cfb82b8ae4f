"""Percentiles, transitions, and which requests flow with the text."""

from typing import Any

import pytest

from bench.aws_calls import AwsCall
from bench.execution_history import count_transitions, largest_state_bytes
from bench.report import ResultRow, format_table
from bench.stats import LatencySamples


def test_a_percentile_is_a_sample_that_was_measured() -> None:
    times = LatencySamples.from_samples([5, 1, 4, 2, 3])
    assert (times.p50, times.p95) == (3, 5)
    assert LatencySamples.from_samples([7]).p50 == LatencySamples.from_samples([7]).p95 == 7


def entered(kind: str = "TaskStateEntered", text: str = "{}") -> dict[str, Any]:
    return {"type": kind, "stateEnteredEventDetails": {"name": "x", "input": text}}


def test_the_start_and_every_state_entered_is_a_transition() -> None:
    history = [{"type": "ExecutionStarted"}, entered(), {"type": "TaskScheduled"}, entered("SucceedStateEntered")]
    assert count_transitions(history) == 3


def test_a_retry_is_a_transition_too() -> None:
    history = [entered(), {"type": "TaskScheduled"}, {"type": "TaskFailed"}, {"type": "TaskScheduled"}]
    assert count_transitions(history) == 1 + 1 + 1


def test_the_largest_state_is_measured_in_bytes() -> None:
    assert largest_state_bytes([entered(text="ä"), entered(text="abc")]) == 3
    assert largest_state_bytes([]) == 0


def record(operation: str, request: dict[str, Any]) -> AwsCall:
    return AwsCall.from_record({"service": "dynamodb", "operation": operation, "atNs": 1, "request": request})


def key(sk: str) -> dict[str, Any]:
    return {"pk": {"S": "t"}, "sk": {"S": sk}}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ('[{"type":"text","text":"a \\"type\\""}]', "append"),
        ('[{"type":"reasoning","text":"a"},{"type":"text","text":"b"}]', "append"),
        ('[{"type":"roundStarted","round":1}]', "step"),
        ('[{"type":"text","text":"a"},{"type":"done"}]', "step"),
    ],
)
def test_an_append_holds_text_and_nothing_else(data: str, kind: str) -> None:
    assert record("PutItem", {"Item": key("e#0000000002") | {"data": {"S": data}}}).kind == kind


def test_a_poll_asks_for_entries_of_logs_only() -> None:
    def asked(*names: str) -> AwsCall:
        return record("BatchGetItem", {"RequestItems": {"T": {"Keys": [key(name) for name in names]}}})

    assert asked("e#0000000002", "e#0000000007").kind == "poll"
    assert asked("turn", "e#0000000002").kind == "step"


def test_a_look_at_the_next_entry_is_a_watch() -> None:
    assert record("GetItem", {"Key": key("e#0000000002")}).kind == "watch"
    assert record("GetItem", {"Key": key("p#000001")}).kind == "step"


def test_what_counts_the_ledger_is_not_the_turns() -> None:
    asked = {"Key": {"pk": {"S": "t#local#rollup"}, "sk": {"S": "edition"}}}
    assert record("GetItem", asked).kind == "audit"


def test_a_missed_target_stands_out() -> None:
    lines = format_table(
        [ResultRow("a", "one", "≤ 2", "3", is_met=False), ResultRow("b", "two", "≤ 2", "1", is_met=True)]
    ).splitlines()
    assert lines[2].endswith("MISSED")
    assert lines[3].endswith("ok")
