"""Let the single writes of a test land twice: at once, as when the SDK repeats a lost request, or again later.

A transaction has a token, with which DynamoDB recognizes its copies for ten minutes. So only writes without one land
twice.
"""

from collections.abc import Callable, Sequence

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb import Write
from fermata.aws.resources import Resources


class WriteRecorder:
    """Records the single writes of `resources`."""

    def __init__(self, resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
        self._send = resources.tables._send
        self.writes: list[Write] = []
        monkeypatch.setattr(resources.tables, "_send", self._record)

    def _record(self, writes: Sequence[Write]) -> None:
        self.writes += writes if len(writes) == 1 else ()
        self._send(writes)

    def land_again(self, check: Callable[[], object] = lambda: None) -> None:
        """Send each recorded write again, whether it is accepted or refused, and check after each."""
        for write in list(self.writes):
            try:
                self._send((write,))
            except ClientError as error:
                assert error.response["Error"]["Code"] == "ConditionalCheckFailedException"  # noqa: PT017 (else raised)
            check()


def repeat_single_writes(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, between: Callable[[], object] = lambda: None
) -> None:
    """Send each single write of `resources` twice. Its caller sees only the second response.

    Args:
        between: Runs after the first of the two, which was answered, but not heard.
    """
    send = resources.tables._send

    def send_twice(writes: Sequence[Write]) -> None:
        send(writes)
        if len(writes) == 1:
            between()
            send(writes)

    monkeypatch.setattr(resources.tables, "_send", send_twice)
