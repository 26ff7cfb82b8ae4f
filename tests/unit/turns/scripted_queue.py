"""A queue of webhooks that a test empties itself."""

from typing import Any

from botocore.exceptions import EndpointConnectionError

from fermata.aws.resources import Resources
from fermata.turns.webhooks.deliver_message import deliver_webhook_message


class ScriptedQueue:
    """Keeps messages with their delays until they are delivered."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, Any], float]] = []
        self.hidden: list[tuple[str, float]] = []
        """By which receipt a message was hidden that failed, and for how long."""
        self.is_down = False

    def hide_received(self, receipt: str, seconds: float) -> None:
        self.hidden.append((receipt, seconds))

    def send(self, message: dict[str, Any], *, delay_seconds: float = 0) -> None:
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="https://sqs.example")
        self.messages.append((message, delay_seconds))

    def deliver(self, resources: Resources) -> None:
        """Deliver what is queued now, and what is queued meanwhile without a delay."""
        pending, self.messages = self.messages, []
        while pending:
            for message, _delay in pending:
                deliver_webhook_message(resources, message)
            pending = [queued for queued in self.messages if queued[1] == 0]
            self.messages = [queued for queued in self.messages if queued[1] != 0]


def install_scripted_queue(resources: Resources) -> ScriptedQueue:
    """Give resources a queue of their own."""
    queue = ScriptedQueue()
    resources.__dict__["webhook_queue"] = queue
    return queue
