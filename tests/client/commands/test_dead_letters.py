"""Dead letters of content are read from the stream again and consumed; those of webhooks go back into their queue."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata.content.outbox import consume_content_changes
from fermata_client.cli import main
from fermata_client.stack.resources import StackLocation

LETTERS, WEBHOOK_LETTERS, WEBHOOKS = "queue/content", "queue/webhook-letters", "queue/webhooks"
RESOURCES = {
    "ContentDeadLetters": LETTERS,
    "WebhookDeadLetters": WEBHOOK_LETTERS,
    "WebhookQueue": WEBHOOKS,
    "ConsumeContentFunction": "fermata-consume-content",
}


class TrimmedError(Exception):
    """The stream has no such record any more."""


def make_record(number: int) -> dict[str, Any]:
    data = json.dumps({"model": "post", "id": "rye", "version": number, "action": "update", "at": "2027-01-01"})
    image = {"pk": {"S": "t#bakery#s#shop#main"}, "sk": {"S": f"h#post#rye#{number:010d}"}, "data": {"S": data}}
    own = {"SequenceNumber": str(100 + number), "NewImage": image, "Keys": {"vector": {"B": b"\x00\xff"}}}
    return {"eventName": "INSERT", "dynamodb": own}


def make_letter(first: int, last: int) -> str:
    batch = {
        "shardId": "shard-1", "streamArn": "arn:stream", "batchSize": last - first + 1,
        "startSequenceNumber": str(100 + first), "endSequenceNumber": str(100 + last),
        "approximateArrivalOfFirstRecord": "2027-01-01T10:00:00Z",
    }  # fmt: skip
    return json.dumps({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": batch})


class SimulatedStack:
    """The AWS services that an operator's command asks: queues, the stream of the table, and the function."""

    exceptions = SimpleNamespace(TrimmedDataAccessException=TrimmedError, ResourceNotFoundException=TrimmedError)

    def __init__(self) -> None:
        self.queues: dict[str, dict[str, str]] = {LETTERS: {}, WEBHOOK_LETTERS: {}, WEBHOOKS: {}}
        self.consumed: list[int] = []
        self.failing: set[int] = set()
        self.is_trimmed = False

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_stack_resources"
        listed = [{"LogicalResourceId": name, "PhysicalResourceId": place} for name, place in RESOURCES.items()]
        return SimpleNamespace(paginate=lambda StackName: [{"StackResourceSummaries": listed}])

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> Any:
        return {"Attributes": {AttributeNames[0]: str(len(self.queues[QueueUrl]))}}

    def receive_message(self, QueueUrl: str, **_options: Any) -> Any:
        found = list(self.queues[QueueUrl].items())[:10]
        return {"Messages": [{"MessageId": one, "ReceiptHandle": one, "Body": body} for one, body in found]}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:
        del self.queues[QueueUrl][ReceiptHandle]

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:
        self.queues[QueueUrl][f"sent-{len(self.queues[QueueUrl])}"] = MessageBody

    def get_shard_iterator(self, SequenceNumber: str, **_place: str) -> Any:
        if self.is_trimmed:
            raise TrimmedError
        return {"ShardIterator": str(int(SequenceNumber) - 100)}

    def get_records(self, ShardIterator: str) -> Any:
        """Return two records, as a stream whose pages are small."""
        start = int(ShardIterator)
        return {"Records": [make_record(start), make_record(start + 1)], "NextShardIterator": str(start + 2)}

    def invoke(self, FunctionName: str, Payload: bytes) -> Any:
        assert FunctionName == RESOURCES["ConsumeContentFunction"]

        def apply(change: Any) -> None:
            if change.version in self.failing:
                raise RuntimeError("the cause is not fixed")
            self.consumed.append(change.version)

        answer = consume_content_changes(json.loads(Payload)["Records"], apply, lambda *_: pytest.fail("no commit"))
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> SimulatedStack:
    simulated = SimulatedStack()
    monkeypatch.setattr(StackLocation, "create_client", lambda _self, _service, _config=None: simulated)
    return simulated


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["dead-letters", *arguments, "--stack", "fermata"])


def test_changes_of_dead_letters_are_consumed_in_their_order_and_the_letters_go(stack: SimulatedStack) -> None:
    stack.queues[LETTERS] = {"a": make_letter(1, 3), "b": make_letter(7, 7)}
    assert "ContentDeadLetters" in run("list").output
    done = run("replay", "content")
    assert (done.exit_code, stack.consumed) == (0, [1, 2, 3, 7])
    assert "2 of 2 letters are done." in done.output
    assert stack.queues[LETTERS] == {}


def test_a_letter_that_fails_again_stays_and_is_replayed_later(stack: SimulatedStack) -> None:
    stack.queues[LETTERS] = {"a": make_letter(1, 2), "b": make_letter(5, 6), "c": "{}"}
    stack.failing = {2}
    failed = run("replay", "content")
    assert (failed.exit_code, list(stack.queues[LETTERS])) == (1, ["a", "c"])
    assert "A consumer fails still" in failed.output
    assert "names no batch" in failed.output
    stack.failing = set()
    run("replay", "content")
    assert list(stack.queues[LETTERS]) == ["c"]


def test_letters_that_are_older_than_the_stream_are_dropped_on_request_only(stack: SimulatedStack) -> None:
    stack.queues[LETTERS] = {"a": make_letter(1, 2)}
    stack.is_trimmed = True
    kept = run("replay", "content")
    assert (kept.exit_code, list(stack.queues[LETTERS])) == (1, ["a"])
    assert "fermata content reindex" in kept.output
    assert run("replay", "content", "--drop-expired").exit_code == 0
    assert stack.queues[LETTERS] == {}


def test_messages_for_webhooks_go_back_into_their_queue(stack: SimulatedStack) -> None:
    stack.queues[WEBHOOK_LETTERS] = {"a": "one", "b": '{"tenant": "bakery"}'}
    assert run("replay", "webhooks").exit_code == 0
    assert sorted(stack.queues[WEBHOOKS].values()) == ["one", '{"tenant": "bakery", "repeated": true}']
    assert stack.queues[WEBHOOK_LETTERS] == {}
