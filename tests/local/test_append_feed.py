"""Check that the emulator tells of each entry that is appended to a turn log, as it is stored."""

import asyncio
import functools
import queue
import re
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.content.documents.document_rows import effect_sort_key
from local.aws_clients import get_client
from local.emulator import append_feed
from local.emulator.append_feed import FEED_PATH
from local.front_door import append_listener
from local.front_door.append_listener import listen_for_appends
from local.processes import EmulatorProcess
from tests.fixed_response_server import run_fixed_response_server
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


class EnoughHeardError(Exception):
    pass


class ImpatientHearer(QueueHearer):
    """Ends its listener when it is connected for the second time."""

    def set_hearing(self, hears_appends: bool) -> None:
        super().set_hearing(hears_appends)
        if list(self.heard.queue) == [True, False, True]:
            raise EnoughHeardError


def test_a_listener_that_reads_nonsense_connects_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_listener, "RECONNECT_SECONDS", 0)
    hearer = ImpatientHearer()
    with run_fixed_response_server() as server:
        server.body = b"\n{\n"
        with pytest.raises(EnoughHeardError):
            append_listener._listen(server.url, hearer)
    assert list(hearer.heard.queue) == [True, False, True, False]


def test_a_listener_that_is_too_slow_is_told_of_a_gap_in_the_place_of_what_it_has_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(append_feed, "MAX_WAITING_LINES", 3)
    assert asyncio.run(asyncio.wait_for(read_slowly(rows=6), BACKSTOP_SECONDS)) == [b"\n", b"0", b"\n", b"4", b"5"]


async def read_slowly(rows: int) -> list[bytes]:
    """Return the lines, with the numbers in the place of rows, that reach a listener who reads the first row late."""
    told: list[bytes] = []
    begun, is_read, told_last, gone = (asyncio.Event() for _ in range(4))

    async def answer(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200})

    async def hear(message: Any) -> None:
        line = message.get("body")
        if line is None:
            return
        number = re.search(rb"e#0*(\d+)", line)
        told.append(number[1] if number else line)
        if len(told) == 1:
            return
        begun.set()
        await is_read.wait()
        if told[-1] == str(rows - 1).encode():
            told_last.set()

    async def disconnect() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def drop(_message: Any) -> None:
        pass

    feed = append_feed.AppendFeed(answer)
    listening = asyncio.create_task(feed({"type": "http", "path": FEED_PATH}, disconnect, hear))
    await asyncio.sleep(0)  # it is listening
    headers = [(b"x-amz-target", b"DynamoDB_20120810.PutItem")]
    for number in range(rows):
        body = f'{{"Item": {{"pk": {{"S": "one"}}, "sk": {{"S": "e#{number:06d}"}}}}}}'.encode()
        receive = functools.partial(asyncio.sleep, 0, {"type": "http.request", "body": body})
        await feed({"type": "http", "path": "/", "headers": headers}, receive, drop)
        if number == 0:
            await begun.wait()
    is_read.set()
    await told_last.wait()
    gone.set()
    await listening
    return told
