"""Check that the emulator tells of each entry that is appended to a turn log, as it is stored."""

import queue
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.content.documents.document_rows import effect_sort_key
from local.aws_clients import get_client
from local.front_door.append_listener import listen_for_appends
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.waiting import BACKSTOP_SECONDS

TABLE = "lab-logs"


class QueueHearer:
    """Keeps what a poller would be told."""

    def __init__(self) -> None:
        self.heard: queue.Queue[Mapping[str, Any] | bool] = queue.Queue()

    def hear_append(self, row: Mapping[str, Any]) -> None:
        self.heard.put(row)

    def set_hearing(self, hears_appends: bool) -> None:
        self.heard.put(hears_appends)


def build_row(pk: str, sk: str) -> dict[str, Any]:
    """Return a row with a text that looks like the row of an entry."""
    text = '"Item": {"pk": {"S": "none"}, "sk": {"S": "e#000009"}}\n'
    return {"pk": {"S": pk}, "sk": {"S": sk}, "data": {"S": text}, "count": {"N": "1"}}


def put(lab: EmulatorLab, pk: str, sk: str) -> None:
    condition = "attribute_not_exists(pk)"
    lab.dynamodb.put_item(TableName=TABLE, Item=build_row(pk, sk), ConditionExpression=condition)


def test_a_listener_hears_of_each_entry_that_was_written_and_of_no_other_row(
    lab: EmulatorLab, emulator: EmulatorProcess
) -> None:
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    lab.dynamodb.create_table(
        TableName=TABLE, KeySchema=keys, AttributeDefinitions=attributes, BillingMode="PAY_PER_REQUEST"
    )
    hearer = QueueHearer()
    listen_for_appends(emulator.endpoint, hearer)
    assert hearer.heard.get(timeout=BACKSTOP_SECONDS) is True, "the listener is connected"
    put(lab, "another", "turn")
    put(lab, "one", "e#000001")
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        put(lab, "one", "e#000001")
    transaction = [
        {"Put": {"TableName": TABLE, "Item": build_row(pk, sk)}}
        for pk, sk in (("three", "m#000001"), ("two", "e#000002"), ("two", "p#000001"))
    ]
    get_client("dynamodb", lab.endpoint).transact_write_items(TransactItems=transaction)
    written = [build_row("one", "e#000001"), build_row("two", "e#000002")]
    assert [hearer.heard.get(timeout=BACKSTOP_SECONDS) for _ in written] == written
    put(lab, "space", effect_sort_key("a document that a tool has written"))
    put(lab, "last", "e#000001")
    told_next = hearer.heard.get(timeout=BACKSTOP_SECONDS)
    assert told_next == build_row("last", "e#000001"), "nothing else was told of meanwhile"
