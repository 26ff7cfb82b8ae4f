"""Find the dead letters of a deployment, and have what they are about done again.

A dead letter of the stream of content names a batch of the stream, and has no record of it: the stream keeps records
for 24 hours (https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-errors.html). So it is read again from there,
and given to the function that could not take it.
"""

import base64
import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from fermata_client.stack.resources import StackLocation

CONTENT_QUEUE = "ContentDeadLetters"
WEBHOOK_QUEUE, WEBHOOK_SOURCE = "WebhookDeadLetters", "WebhookQueue"
_SUFFIX = "DeadLetters"
_CONSUMER = "ConsumeContentFunction"
_MAX_EVENT_BYTES = 4_000_000
"""Of the 6 MB that Lambda takes."""
_HIDDEN_SECONDS = 300
"""How long a letter that is looked at is hidden from others who look."""


@dataclass(frozen=True)
class ReplayedLetter:
    """What became of a dead letter.

    Attributes:
        about: What it is about, in words.
        problem: Why it stays in the queue; empty for one that is done and deleted.
        is_expired: Whether what it is about is kept nowhere any more.
    """

    about: str
    problem: str = ""
    is_expired: bool = False


class DeadLetterQueues:
    """The queues of dead letters of a stack."""

    def __init__(self, location: StackLocation) -> None:
        self._sqs: Any = location.create_client("sqs")
        self._location = location
        pages = location.create_client("cloudformation").get_paginator("list_stack_resources")
        self._resources = {
            resource["LogicalResourceId"]: str(resource.get("PhysicalResourceId", ""))
            for page in pages.paginate(StackName=location.stack)
            for resource in page["StackResourceSummaries"]
        }

    def count_letters(self) -> dict[str, int]:
        """Return how many letters each queue has."""
        queues = {name: url for name, url in sorted(self._resources.items()) if name.endswith(_SUFFIX)}
        return {name: self._count(url) for name, url in queues.items()}

    def _count(self, url: str) -> int:
        name = "ApproximateNumberOfMessages"
        return int(self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def replay_content(self, *, drops_expired: bool = False) -> Iterator[ReplayedLetter]:
        """Give the changes of content to their consumers again, letter by letter, and delete what was taken.

        Args:
            drops_expired: Also delete letters whose changes the stream has no more.
        """
        queue = self._find(CONTENT_QUEUE)
        for message in self._receive(queue):
            outcome = self._replay_batch(message["Body"])
            if not outcome.problem or (outcome.is_expired and drops_expired):
                self._sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            yield outcome

    def replay_webhooks(self) -> Iterator[ReplayedLetter]:
        """Put messages for webhooks back into their queue."""
        queue, source = self._find(WEBHOOK_QUEUE), self._find(WEBHOOK_SOURCE)
        for message in self._receive(queue):
            self._sqs.send_message(QueueUrl=source, MessageBody=_mark_repeated(message["Body"]))
            self._sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            yield ReplayedLetter("a message for a webhook")

    def _find(self, name: str) -> str:
        if not self._resources.get(name):
            raise click.ClickException(f"The stack {self._location.stack} has no {name}.")
        return self._resources[name]

    def _receive(self, queue: str) -> Iterator[Any]:
        """Yield each letter once. One that is not deleted is hidden for a while, and then there again."""
        seen: set[str] = set()
        while True:
            answer = self._sqs.receive_message(
                QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=_HIDDEN_SECONDS, WaitTimeSeconds=1
            )
            new = [one for one in answer.get("Messages", []) if one["MessageId"] not in seen]
            if not new:
                return
            seen |= {one["MessageId"] for one in new}
            yield from new

    def _replay_batch(self, body: str) -> ReplayedLetter:
        try:
            batch = json.loads(body)["DDBStreamBatchInfo"]
            about = f"{batch['batchSize']} changes from {batch['approximateArrivalOfFirstRecord']}"
        except (ValueError, KeyError, TypeError):
            return ReplayedLetter("a letter", "It names no batch of the stream.")
        streams: Any = self._location.create_client("dynamodbstreams")
        gone = (streams.exceptions.TrimmedDataAccessException, streams.exceptions.ResourceNotFoundException)
        try:
            records = list(_read_batch(streams, batch))
        except gone:
            return ReplayedLetter(about, "They are older than the stream, which keeps 24 hours.", is_expired=True)
        for event in _split_events(records):
            if problem := self._consume(event):
                return ReplayedLetter(about, problem)
        return ReplayedLetter(about)

    def _consume(self, event: str) -> str:
        """Invoke the consumer, and return what it says of what it has not taken."""
        answer: Any = self._location.create_client("lambda").invoke(
            FunctionName=self._find(_CONSUMER), Payload=event.encode()
        )
        said = json.loads(answer["Payload"].read() or b"null")
        if answer.get("FunctionError"):
            return f"The function has failed: {str(said)[:300]}"
        failed = (said or {}).get("batchItemFailures", [])
        return "A consumer fails still: look for content.change_failed in its log." if failed else ""


def _read_batch(streams: Any, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of a batch from the stream, among them those that the function's filter leaves out."""
    iterator = streams.get_shard_iterator(
        StreamArn=batch["streamArn"],
        ShardId=batch["shardId"],
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber=batch["startSequenceNumber"],
    )["ShardIterator"]
    last = int(batch["endSequenceNumber"])
    while iterator:
        page = streams.get_records(ShardIterator=iterator)
        for record in page["Records"]:
            number = int(record["dynamodb"]["SequenceNumber"])
            if number <= last:
                yield record
            if number >= last:
                return
        iterator = page.get("NextShardIterator")


def _split_events(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield events for the function, in the order of the records, none of which is too large for it."""
    texts: list[str] = []
    size = 0
    for record in records:
        text = json.dumps(record, default=_to_json)
        if texts and size + len(text) > _MAX_EVENT_BYTES:
            yield f'{{"Records": [{", ".join(texts)}]}}'
            texts, size = [], 0
        texts.append(text)
        size += len(text)
    if texts:
        yield f'{{"Records": [{", ".join(texts)}]}}'


def _to_json(value: Any) -> Any:
    """Return what Lambda makes of a value that JSON does not have."""
    if isinstance(value, dt.datetime):
        return value.timestamp()
    return base64.b64encode(value).decode()


def _mark_repeated(body: str) -> str:
    """Return a message that says that it was handled before, so that what its function has not done is done."""
    try:
        message = json.loads(body)
    except ValueError:
        return body
    return json.dumps(message | {"repeated": True}) if isinstance(message, dict) else body
