"""A queue of SQS in memory: messages wait, are hidden while somebody works on them, and come again unless deleted."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.memory_aws.errors import aws_error

VISIBILITY_SECONDS = 1800.0
MAX_RECEIVES = 12
MAX_DELAY_SECONDS = 900
"""As the template of the stack has them, and as SQS limits them."""


@dataclass(eq=False)
class QueuedMessage:
    body: str
    visible_at: float
    receives: int = 0
    receipt: str = ""


class MemorySqs:
    """One queue with its dead letters. Method names and arguments of what the product calls are boto3's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.messages: list[QueuedMessage] = []
        self.dead_letters: list[QueuedMessage] = []
        self._receipts = itertools.count(1)

    def send_message(self, *, QueueUrl: str, MessageBody: str, DelaySeconds: int, MessageGroupId: str) -> Any:
        if not (0 <= DelaySeconds <= MAX_DELAY_SECONDS and 0 < len(MessageGroupId) <= 128 and QueueUrl):
            raise aws_error("InvalidParameterValue", "SendMessage")
        self.messages.append(QueuedMessage(MessageBody, self._now() + DelaySeconds))
        return {}

    def change_message_visibility(self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int) -> Any:
        received = [message for message in self.messages if QueueUrl and message.receipt == ReceiptHandle]
        if not received:
            raise aws_error("ReceiptHandleIsInvalid", "ChangeMessageVisibility")
        received[0].visible_at = self._now() + VisibilityTimeout
        return {}

    # whoever polls the queue

    @property
    def due_at(self) -> float | None:
        """When the next message can be received, which may be over; None if none waits."""
        return min((message.visible_at for message in self.messages), default=None)

    @property
    def has_visible(self) -> bool:
        return any(message.visible_at <= self._now() for message in self.messages)

    def receive(self) -> QueuedMessage | None:
        """Return the oldest visible message and hide it. One that was received too often is set aside."""
        for message in sorted(self.messages, key=lambda message: message.visible_at):
            if message.visible_at > self._now():
                return None
            if message.receives < MAX_RECEIVES:
                message.receives += 1
                message.receipt = f"receipt-{next(self._receipts)}"
                message.visible_at = self._now() + VISIBILITY_SECONDS
                return message
            self.messages.remove(message)
            self.dead_letters.append(message)
        return None
