"""Build requests that start a turn. Sent again with the same idempotency key, they join the turn they started."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from fermata_client.service.client import FermataClient
from fermata_client.service.json_types import Event, JsonObject


@dataclass(frozen=True)
class StartTurn:
    """Start a turn with a prompt."""

    client: FermataClient
    scope: str
    prompt: str | None
    content: list[JsonObject] | None
    conversation_id: str
    snapshot: Any
    revision: str | None
    idempotency_key: str
    may_join: bool
    """The caller chose the key, so the turn may have been started before, by another process too."""

    def stream_events(self) -> AbstractContextManager[Iterator[Event]]:
        return self.client.start_turn(
            self.scope,
            self.prompt,
            content=self.content,
            conversation_id=self.conversation_id,
            snapshot=self.snapshot,
            revision=self.revision,
            idempotency_key=self.idempotency_key,
        )

    def start_detached(self) -> str:
        """Start the turn, or join it, without reading its events, and return its bridge's id."""
        response = self.client.start_turn_detached(
            self.scope,
            self.prompt,
            content=self.content,
            conversation_id=self.conversation_id,
            snapshot=self.snapshot,
            revision=self.revision,
            idempotency_key=self.idempotency_key,
        )
        return str(response["bridgeId"])


@dataclass(frozen=True)
class StartUndo:
    """Start a turn that undoes the edits of another one."""

    client: FermataClient
    undone_bridge_id: str
    through: str | None
    idempotency_key: str
    may_join: bool
    """As in `StartTurn`."""

    def stream_events(self) -> AbstractContextManager[Iterator[Event]]:
        return self.client.start_undo(self.undone_bridge_id, through=self.through, idempotency_key=self.idempotency_key)

    def start_detached(self) -> str:
        """Start the undo, or join it, without reading its events, and return its bridge's id."""
        response = self.client.start_undo_detached(
            self.undone_bridge_id, through=self.through, idempotency_key=self.idempotency_key
        )
        return str(response["bridgeId"])


StartRequest = StartTurn | StartUndo
