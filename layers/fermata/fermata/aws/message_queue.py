"""Send messages to the queue of webhooks (SQS)."""

import hashlib
import json
from typing import Any

MAX_DELAY_SECONDS = 900
"""The longest delay that SQS knows."""


class MessageQueue:
    """One queue. Messages are JSON objects that name a tenant, and may arrive more than once."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, message: dict[str, Any], *, delay_seconds: float = 0) -> None:
        """Send a message, which arrives after at most MAX_DELAY_SECONDS. Nothing is sent where there is no queue.

        Messages of a tenant are a group: SQS hands out those of other tenants first while many of one are under way
        (decision 0353).
        """
        if self._url:
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=json.dumps(message),
                DelaySeconds=round(min(max(delay_seconds, 0), MAX_DELAY_SECONDS)),
                MessageGroupId=hashlib.sha256(str(message["tenant"]).encode()).hexdigest()[:32],
            )

    def hide_received(self, receipt: str, seconds: float) -> None:
        """Let a message that was received, and is not done, come again after so many seconds.

        Args:
            receipt: The handle with which SQS has handed it out.
            seconds: At most 12 hours.
        """
        self._client.change_message_visibility(
            QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=round(seconds)
        )
