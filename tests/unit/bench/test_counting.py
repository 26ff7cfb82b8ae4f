"""Percentiles, transitions, and kinds of AWS calls."""

from typing import Any

import pytest

from bench.aws_calls import AwsCall
from bench.execution_history import count_transitions, largest_state_bytes
from bench.report import ResultRow, format_table
from bench.stats import LatencySamples


def test_a_percentile_is_a_sample_that_was_measured() -> None:
    samples = LatencySamples.from_samples([5, 1, 4, 2, 3])
    assert (samples.p50, samples.p95) == (3, 5)
    assert LatencySamples.from_samples([7]).p50 == LatencySamples.from_samples([7]).p95 == 7


def entered_event(event_type: str = "TaskStateEntered", text: str = "{}") -> dict[str, Any]:
    return {"type": event_type, "stateEnteredEventDetails": {"name": "x", "input": text}}


def test_the_start_and_every_state_entered_is_a_transition() -> None:
    history = [
        {"type": "ExecutionStarted"},
        entered_event(),
        {"type": "TaskScheduled"},
        entered_event("SucceedStateEntered"),
    ]
    assert count_transitions(history) == 3


def test_a_retry_is_a_transition_too() -> None:
    history = [entered_event(), {"type": "TaskScheduled"}, {"type": "TaskFailed"}, {"type": "TaskScheduled"}]
    assert count_transitions(history) == 1 + 1 + 1


def test_the_largest_state_is_measured_in_bytes() -> None:
    assert largest_state_bytes([entered_event(text="ä"), entered_event(text="abc")]) == 3
    assert largest_state_bytes([]) == 0


def dynamodb_call(operation: str, request: dict[str, Any]) -> AwsCall:
    return AwsCall.from_record({"service": "dynamodb", "operation": operation, "atNs": 1, "request": request})


def item_key(sk: str) -> dict[str, Any]:
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
def test_an_entry_of_text_only_is_an_append(data: str, kind: str) -> None:
    assert dynamodb_call("PutItem", {"Item": item_key("e#0000000002") | {"data": {"S": data}}}).kind == kind


def test_a_batch_of_log_entries_only_is_a_poll() -> None:
    def batch_get(*sort_keys: str) -> AwsCall:
        return dynamodb_call("BatchGetItem", {"RequestItems": {"T": {"Keys": [item_key(sk) for sk in sort_keys]}}})

    assert batch_get("e#0000000002", "e#0000000007").kind == "poll"
    assert batch_get("turn", "e#0000000002").kind == "step"


def test_a_read_of_one_log_entry_is_a_watch() -> None:
    assert dynamodb_call("GetItem", {"Key": item_key("e#0000000002")}).kind == "watch"
    assert dynamodb_call("GetItem", {"Key": item_key("p#000001")}).kind == "step"


def test_a_request_for_a_rollup_is_audit() -> None:
    request = {"Key": {"pk": {"S": "t#local#rollup"}, "sk": {"S": "edition"}}}
    assert dynamodb_call("GetItem", request).kind == "audit"


def test_a_missed_target_stands_out() -> None:
    lines = format_table(
        [ResultRow("a", "one", "≤ 2", "3", is_met=False), ResultRow("b", "two", "≤ 2", "1", is_met=True)]
    ).splitlines()
    assert lines[2].endswith("MISSED")
    assert lines[3].endswith("ok")
