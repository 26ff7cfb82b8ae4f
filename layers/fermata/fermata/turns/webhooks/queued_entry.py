"""Define the messages of the queue of webhooks: a whole log entry, or one call that it asks for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fermata.domain.value_dataclass import value_dataclass


def describe_attempt(attempt: int, *, is_repeated: bool) -> dict[str, Any]:
    """Return the members of a message that say which attempt it asks for; none if any will do."""
    return ({"attempt": attempt} if attempt else {}) | ({"repeated": True} if is_repeated else {})


@value_dataclass(frozen=True)
class QueuedEntry:
    """A message of the queue: all that a log entry asks for, or one call of it.

    Attributes:
        webhook: The webhook that is told about one event.
        index: The place of that event in the entry.
        hook: The key of one point of the turn, at which an endpoint of its agent is called.
        endpoint: That endpoint.
        deferrals: How often the call had to wait for other calls of its tenant.
        attempt: Which attempt the message asks for, from 1 on; 0 if any (decision 0549).
        is_repeated: Whether a function may have handled the message before, and died.
    """

    tenant: str
    turn: str
    entry: int
    webhook: str = ""
    index: int = 0
    is_redelivery: bool = False
    hook: str = ""
    endpoint: str = ""
    deferrals: int = 0
    attempt: int = 0
    is_repeated: bool = False

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "QueuedEntry":
        """Return what a message of the queue names."""
        return cls(
            str(message["tenant"]),
            str(message["turn"]),
            int(message["entry"]),
            str(message.get("webhook", "")),
            int(message.get("index", 0)),
            bool(message.get("redelivery", False)),
            str(message.get("hook", "")),
            str(message.get("endpoint", "")),
            int(message.get("deferrals", 0)),
            int(message.get("attempt", 0)),
            bool(message.get("repeated", False)),
        )

    def to_message(self) -> dict[str, Any]:
        """Return the message of the queue."""
        message: dict[str, Any] = {"tenant": self.tenant, "turn": self.turn, "entry": self.entry}
        if self.webhook:
            message |= {"webhook": self.webhook, "index": self.index}
        if self.hook:
            message |= {"hook": self.hook, "endpoint": self.endpoint}
        if self.deferrals:
            message |= {"deferrals": self.deferrals}
        message |= describe_attempt(self.attempt, is_repeated=self.is_repeated)
        return message | ({"redelivery": True} if self.is_redelivery else {})

    @property
    def is_whole_entry(self) -> bool:
        """Whether the message stands for all calls of the entry."""
        return not (self.webhook or self.hook)

    def defer(self) -> "QueuedEntry":
        """Return the message of the same call, which has waited once more."""
        return replace(self, deferrals=self.deferrals + 1)
