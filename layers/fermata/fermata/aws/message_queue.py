"""Send messages to the queue of webhooks (SQS)."""

import json
from typing import Any

MAX_DELAY_SECONDS = 900
"""The longest delay that SQS knows."""


class MessageQueue:
    """One queue. Messages are JSON objects, and may arrive more than once."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, message: dict[str, Any], *, delay_seconds: float = 0) -> None:
        """Send a message, which arrives after at most MAX_DELAY_SECONDS. Nothing is sent where there is no queue."""
        if self._url:
            delay = round(min(max(delay_seconds, 0), MAX_DELAY_SECONDS))
            self._client.send_message(QueueUrl=self._url, MessageBody=json.dumps(message), DelaySeconds=delay)
