"""Write conditionally, report what is stored, and retry transient failures."""

import heapq
import random
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fermata.aws import dynamodb_client
from fermata.aws.dynamodb_client import MAX_WRITE_ATTEMPTS, draw_pause
from fermata.aws.dynamodb_errors import is_write_conflict, translate_write_error
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    Put,
    TransactionCanceled,
    Update,
)
from fermata.aws.resources import Resources
from tests.faults import FaultScript
from tests.late_writes import repeat_single_writes

T = "bridges"


@pytest.fixture(autouse=True)
def sleeps(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record seconds_slept instead of waiting."""
    seconds_slept: list[float] = []
    monkeypatch.setattr(resources.tables, "_sleep", seconds_slept.append)
    return seconds_slept


def test_what_goes_in_comes_out_with_whole_numbers_whole(resources: Resources) -> None:
    item = {"pk": "a", "sk": "b", "n": 3, "d": Decimal("0.1"), "neg": -2, "m": {"x": [1, "y"]}, "t": True}
    resources.tables.write_items(Put(T, item))
    found = resources.tables.get_item(T, "a", "b")
    assert found == item
    assert {name: type(found[name]) for name in ("n", "d", "neg")} == {"n": int, "d": Decimal, "neg": int}


def test_what_is_not_there_is_none(resources: Resources) -> None:
    assert resources.tables.get_item(T, "a", "b") is None


def test_a_second_put_of_what_must_be_absent_reports_what_is_stored(resources: Resources) -> None:
    resources.tables.write_items(Put(T, {"pk": "a", "sk": "b", "by": "first"}, if_absent=True))
    with pytest.raises(ConditionFailed) as refused:
        resources.tables.write_items(Put(T, {"pk": "a", "sk": "b", "by": "second"}, if_absent=True))
    assert refused.value.item == {"pk": "a", "sk": "b", "by": "first"}


def test_a_put_is_not_refused_by_its_own_copy(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore repeats a request whose response was lost. The stored item then is the very one to be stored."""
    repeat_single_writes(resources, monkeypatch)
    item = {"pk": "a", "sk": "b", "cost": Decimal("0.10"), "n": 3, "parts": ("x", "y")}
    resources.tables.write_items(Put(T, item, if_absent=True))
    assert resources.tables.get_item(T, "a", "b") == item | {"parts": ["x", "y"]}
    with pytest.raises(ConditionFailed):
        resources.tables.write_items(Put(T, item | {"n": 4}, if_absent=True))


@pytest.mark.parametrize(
    ("code", "tokens"), [("TransactionInProgressException", 1), ("TransactionConflictException", 2)]
)
def test_a_transaction_keeps_its_token_until_it_is_decided(
    resources: Resources, faults: FaultScript, monkeypatch: pytest.MonkeyPatch, code: str, tokens: int
) -> None:
    sent: set[str] = set()
    transact = resources.tables._client.transact_write_items

    def record_token(**request: Any) -> Any:
        sent.add(request["ClientRequestToken"])
        return transact(**request)

    monkeypatch.setattr(resources.tables._client, "transact_write_items", record_token)
    faults.fail_call("dynamodb.TransactWriteItems", code)
    resources.tables.write_items(Put(T, {"pk": "a", "sk": "1"}), Put(T, {"pk": "a", "sk": "2"}))
    assert len(sent) == tokens
    assert all(len(token) <= 36 for token in sent), "DynamoDB accepts no longer one"


def test_an_update_never_creates_an_item(resources: Resources) -> None:
    with pytest.raises(ConditionFailed) as refused:
        resources.tables.write_items(Update(T, "a", "b", "SET x = :x", {":x": 1}))
    assert refused.value.item is None
    assert resources.tables.get_item(T, "a", "b") is None


def test_a_transaction_is_all_or_nothing_and_names_the_write_that_refused(resources: Resources) -> None:
    resources.tables.write_items(Put(T, {"pk": "a", "sk": "2", "by": "first"}))
    with pytest.raises(TransactionCanceled) as refused:
        resources.tables.write_items(Put(T, {"pk": "a", "sk": "1"}), Put(T, {"pk": "a", "sk": "2"}, if_absent=True))
    assert [reason.condition_failed for reason in refused.value.reasons] == [False, True]
    assert refused.value.reasons[1].item == {"pk": "a", "sk": "2", "by": "first"}
    assert resources.tables.get_item(T, "a", "1") is None


def test_a_check_holds_a_transaction_back_and_a_delete_belongs_to_it(resources: Resources) -> None:
    resources.tables.write_items(Put(T, {"pk": "a", "sk": "old", "v": 1}))
    with pytest.raises(TransactionCanceled):
        resources.tables.write_items(Delete(T, "a", "old"), ConditionCheck(T, "a", "guard", "attribute_exists(pk)"))
    assert resources.tables.get_item(T, "a", "old")
    resources.tables.write_items(Delete(T, "a", "old"), ConditionCheck(T, "a", "guard", "attribute_not_exists(pk)"))
    assert resources.tables.get_item(T, "a", "old") is None


def test_a_check_alone_is_our_own_mistake(resources: Resources) -> None:
    with pytest.raises(ValueError, match="writes nothing"):
        resources.tables.write_items(ConditionCheck(T, "a", "b", "attribute_exists(pk)"))


@pytest.mark.parametrize("writes", [1, 2])
def test_a_conflict_with_another_transaction_is_tried_again(
    resources: Resources, faults: FaultScript, sleeps: list[float], writes: int
) -> None:
    call = "dynamodb.PutItem" if writes == 1 else "dynamodb.TransactWriteItems"
    faults.fail_call(call, "TransactionConflictException", times=3)
    resources.tables.write_items(*(Put(T, {"pk": "a", "sk": str(number)}, if_absent=True) for number in range(writes)))
    assert len(sleeps) == 3
    assert resources.tables.get_item(T, "a", "0")


def test_a_conflict_that_does_not_pass_is_raised_in_the_end(
    resources: Resources, faults: FaultScript, sleeps: list[float]
) -> None:
    faults.fail_call("dynamodb.PutItem", "TransactionConflictException", times=MAX_WRITE_ATTEMPTS)
    with pytest.raises(ClientError, match="TransactionConflictException"):
        resources.tables.write_items(Put(T, {"pk": "a", "sk": "b"}))
    assert len(sleeps) == MAX_WRITE_ATTEMPTS - 1


def test_a_hundred_transactions_that_meet_at_one_item_all_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the starts of one user do. A transaction holds the item, and those that meet it are refused."""
    monkeypatch.setattr(dynamodb_client, "random", random.Random(1))
    held_seconds, refusal_seconds, held_until = 0.012, 0.006, 0.0
    events = [(random.Random(number).uniform(0, 0.05), number, 1) for number in range(100)]
    heapq.heapify(events)
    while events:
        now, number, attempt = heapq.heappop(events)
        if now >= held_until:
            held_until = now + held_seconds
        else:
            assert attempt < MAX_WRITE_ATTEMPTS
            heapq.heappush(events, (now + refusal_seconds + draw_pause(attempt), number, attempt + 1))
    assert held_until < 4


def test_what_is_no_conflict_is_not_retried(resources: Resources, faults: FaultScript, sleeps: list[float]) -> None:
    faults.fail_call("dynamodb.PutItem", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        resources.tables.write_items(Put(T, {"pk": "a", "sk": "b"}))
    assert not sleeps


def test_a_conflict_beside_a_failed_condition_is_a_refusal() -> None:
    reasons = [{"Code": "TransactionConflict"}, {"Code": "ConditionalCheckFailed", "Item": {"pk": {"S": "a"}}}]
    response = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    error = ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]  # reasons are absent from the stubs
    assert not is_write_conflict(error)
    explained = translate_write_error(error)
    assert isinstance(explained, TransactionCanceled)
    assert [(reason.condition_failed, reason.item) for reason in explained.reasons] == [
        (False, None),
        (True, {"pk": "a"}),
    ]


def test_throttled_writes_of_a_transaction_are_tried_again() -> None:
    reasons = [{"Code": "ThrottlingError"}, {"Code": "None"}]
    response = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    assert is_write_conflict(ClientError(response, "TransactWriteItems"))  # type: ignore[arg-type]  # as above


def test_a_lost_answer_leaves_the_write_done(resources: Resources, faults: FaultScript) -> None:
    faults.lose_response("dynamodb.PutItem")
    with pytest.raises(ConnectionClosedError):
        resources.tables.write_items(Put(T, {"pk": "a", "sk": "b"}, if_absent=True))
    assert resources.tables.get_item(T, "a", "b")


def _fill(resources: Resources, count: int) -> None:
    for number in range(count):
        resources.tables.write_items(
            Put(T, {"pk": "a", "sk": f"m#{number:03d}", "open": "o", "openSince": f"{number:03d}"})
        )


def test_a_query_goes_from_low_to_high_and_back(resources: Resources) -> None:
    _fill(resources, 5)
    up = resources.tables.query_items(T, "a", min_sk="m#001", max_sk="m#003")
    down = resources.tables.query_items(T, "a", min_sk="m#001", max_sk="m#003", descending=True, limit=2)
    assert [item["sk"] for item in up] == ["m#001", "m#002", "m#003"]
    assert [item["sk"] for item in down] == ["m#003", "m#002"]
    assert len(resources.tables.query_items(T, "a")) == 5


def test_a_query_reads_every_page(resources: Resources) -> None:
    for number in range(4):
        resources.tables.write_items(Put(T, {"pk": "a", "sk": str(number), "body": "x" * 390_000}))
    assert len(resources.tables.query_items(T, "a")) == 4


def test_an_index_is_read_in_its_own_order(resources: Resources) -> None:
    _fill(resources, 3)
    assert [item["openSince"] for item in resources.tables.query_index(T, "open", ("open", "o"))] == [
        "000",
        "001",
        "002",
    ]


def test_a_batch_returns_the_items_that_exist(resources: Resources) -> None:
    _fill(resources, 3)
    found = resources.tables.batch_get_items(T, [("a", "m#000"), ("a", "m#002"), ("a", "missing")])
    assert sorted(found) == [("a", "m#000"), ("a", "m#002")]


def test_unprocessed_keys_of_a_batch_are_requested_again(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, sleeps: list[float]
) -> None:
    _fill(resources, 2)
    client: Any = resources.tables._client
    batch_get_item = client.batch_get_item
    keys = [("a", "m#000"), ("a", "m#001")]
    batch_sizes: list[int] = []

    def process_one_key(**request: Any) -> Any:
        requested = request["RequestItems"][T]["Keys"]
        batch_sizes.append(len(requested))
        if len(requested) == 1:
            return batch_get_item(**request)
        unprocessed = {T: request["RequestItems"][T] | {"Keys": requested[1:]}}
        first = {T: request["RequestItems"][T] | {"Keys": requested[:1]}}
        return batch_get_item(RequestItems=first) | {"UnprocessedKeys": unprocessed}

    monkeypatch.setattr(client, "batch_get_item", process_one_key)
    assert sorted(resources.tables.batch_get_items(T, keys)) == keys
    assert batch_sizes == [2, 1]
    assert len(sleeps) == 1
