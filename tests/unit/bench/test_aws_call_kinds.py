"""Kinds of AWS calls."""

from typing import Any

import pytest

from bench.aws_calls import AwsCall


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
