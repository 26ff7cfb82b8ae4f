"""Let the writes of a test land twice: at once, as when the SDK repeats a lost request, or again later.

A transaction has a token, with which DynamoDB recognizes its copies for ten minutes. Only a single write can therefore
land twice at once.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from tests.stored_rows import read_table

REFUSALS = ("ConditionalCheckFailedException", "TransactionCanceledException")


class WriteRecorder:
    """Records the single writes of `resources`, or with `transactions` all writes."""

    def __init__(self, resources: Resources, monkeypatch: pytest.MonkeyPatch, *, transactions: bool = False) -> None:
        self._send = resources.tables._send
        self._transactions = transactions
        self.requests: list[Sequence[Write]] = []
        monkeypatch.setattr(resources.tables, "_send", self._record)

    def _record(self, writes: Sequence[Write], token: str) -> None:
        self.requests += [writes] if len(writes) == 1 or self._transactions else []
        self._send(writes, token)

    def land_again(self, check: Callable[[], object] = lambda: None) -> None:
        """Send each recorded request again, whether it is accepted or refused, and check after each."""
        for writes in list(self.requests):
            try:
                self._send(writes, "")
            except ClientError as error:
                assert error.response["Error"]["Code"] in REFUSALS  # noqa: PT017 (else raised)
            check()


def repeat_single_writes(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, between: Callable[[], object] = lambda: None
) -> None:
    """Send each single write of `resources` twice. Its caller sees only the second response.

    Args:
        between: Runs after the first of the two, which was answered, but not heard.
    """
    send = resources.tables._send

    def send_twice(writes: Sequence[Write], token: str) -> None:
        send(writes, token)
        if len(writes) == 1:
            between()
            send(writes, token)

    monkeypatch.setattr(resources.tables, "_send", send_twice)


def read_rows(names: Collection[str]) -> dict[str, Any]:
    """Return all rows of these tables, by table and key."""
    return {
        f"{name} {attributes['pk']['S']} {attributes['sk']['S']}": attributes
        for name in names
        for attributes in read_table(name)
    }
