"""Call the service's HTTP API, one method per operation. Nothing is retried here; `run_turn` retries."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

import httpx

from fermata_client.service.json_members import require_member, without_none
from fermata_client.service.json_types import Event, JsonObject
from fermata_client.service.paths import path_of
from fermata_client.service.settings_client import SettingsClient
from fermata_client.service.transport import REQUEST_TIMEOUT_SECONDS, STREAM_IDLE_TIMEOUT_SECONDS, Transport
from fermata_client.service.uploads import Uploads

ACCEPT_JSON = {"accept": "application/json"}
"""With this header a turn is started without streaming its events."""


class FermataClient(SettingsClient):
    """One service and one caller. It may be shared between threads.

    Every method raises a `FermataClientError` (errors.py). Arguments that are None are left out of the request.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        stream_idle_timeout: float = STREAM_IDLE_TIMEOUT_SECONDS,
        request_timeout: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(
            Transport(
                url,
                token,
                transport=transport,
                stream_idle_timeout=stream_idle_timeout,
                request_timeout=request_timeout,
            )
        )
        self._uploads = Uploads(self._transport)

    @property
    def url(self) -> str:
        return self._transport.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def push_agents(self, files: JsonObject) -> JsonObject:
        """Replace the workspace's own agents by what the files define. Folders that are too large are uploaded first.

        Return what has changed.
        """
        return super().push_agents(self._uploads.offload_folders(files))

    # Conversations

    def list_conversations(self, scope: str, *, cursor: str | None = None, limit: int | None = None) -> JsonObject:
        """Return a page of the caller's conversations, most recently used first: `conversations`, `nextCursor`."""
        params = without_none({"scope": scope, "cursor": cursor, "limit": limit})
        return self._request("GET", path_of("conversations"), params=params)

    def create_conversation(
        self,
        scope: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> JsonObject:
        """Create a conversation. Without a credential and model it uses the scope's default."""
        body = {"scope": scope, "title": title, "credentialId": credential_id, "modelId": model_id}
        response = self._request("POST", path_of("conversations"), without_none(body))
        return require_member(response, "conversation", dict)

    def get_conversation(self, conversation_id: str) -> JsonObject:
        """Return a conversation with its newest messages, and `activeTurn` while a turn runs in it."""
        return require_member(self.list_messages(conversation_id), "conversation", dict)

    def list_messages(self, conversation_id: str, *, before: str | None = None, limit: int | None = None) -> JsonObject:
        """Return a page of messages: `conversation` with `messages`, and `nextCursor` (for `before`) to older ones."""
        params = without_none({"before": before, "limit": limit})
        return self._request("GET", path_of("conversations", conversation_id), params=params)

    def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> JsonObject:
        body = without_none({"title": title, "credentialId": credential_id, "modelId": model_id})
        response = self._request("PUT", path_of("conversations", conversation_id), body)
        return require_member(response, "conversation", dict)

    def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation and end the turn that runs in it. Deleting again succeeds."""
        self._request("DELETE", path_of("conversations", conversation_id))

    # Turns

    @contextmanager
    def start_turn(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        content: list[JsonObject] | None = None,
        conversation_id: str | None = None,
        snapshot: Any = None,
        revision: str | None = None,
        idempotency_key: str | None = None,
        model: str | None = None,
    ) -> Iterator[Iterator[Event]]:
        """Start a turn and stream its events.

        Args:
            prompt: the user's message as text; exclusive with `content`.
            content: the message as parts, to send images (`image_part`) and recordings (`audio_part`).
            conversation_id: None creates a conversation, with `model` if given.
            snapshot: the site as the editor has it; a large one is uploaded.
            revision: the document's revision in the editor.
            idempotency_key: with the same key and body, the request joins the turn it started before.
        """
        conversation = conversation_id or str(self.create_conversation(scope, model_id=model)["id"])
        body = self._chat_body(conversation, prompt, content, snapshot, revision)
        headers = without_none({"idempotency-key": idempotency_key})
        with self._transport.stream_events("POST", path_of("chat", scope), body, headers=headers) as events:
            yield events

    def start_turn_detached(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        conversation_id: str,
        content: list[JsonObject] | None = None,
        snapshot: Any = None,
        revision: str | None = None,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """Start a turn without reading it: `{bridgeId, …}`. `stream_events` reads it. Arguments as in `start_turn`."""
        body = self._chat_body(conversation_id, prompt, content, snapshot, revision)
        headers = ACCEPT_JSON | without_none({"idempotency-key": idempotency_key})
        return self._request("POST", path_of("chat", scope), body, headers=headers)

    def get_bridge(self, bridge_id: str) -> JsonObject:
        """Return the state of a turn: status, seq, round and the tool calls that wait for an answer."""
        return self._request("GET", path_of("bridges", bridge_id))

    def stream_events(self, bridge_id: str, after: int = 0) -> AbstractContextManager[Iterator[Event]]:
        """Stream the events of a turn whose `seq` is above `after`, as they come."""
        return self._transport.stream_events("GET", path_of("bridges", bridge_id, "events"), params={"after": after})

    def post_tool_result(
        self,
        bridge_id: str,
        request_id: str,
        result: JsonObject,
        snapshot: Any = None,
        revision: str | None = None,
    ) -> None:
        """Answer a tool request. Repeating the same answer is safe."""
        body = {
            "bridgeId": bridge_id,
            "requestId": request_id,
            "result": result,
            "snapshot": snapshot,
            "revision": revision,
        }
        self._request("POST", path_of("tool-result"), self._uploads.offload_snapshot(without_none(body)))

    def image_part(self, raw: bytes, mime_type: str) -> JsonObject:
        """Return the part of a prompt's `content` that shows this image. A large image is uploaded for it."""
        return self._uploads.image_part(raw, mime_type)

    def audio_part(self, raw: bytes, mime_type: str) -> JsonObject:
        """Return the part of a prompt's `content` that is this recording. A large recording is uploaded for it.

        Args:
            raw: MP3, WAV, M4A, WebM or Ogg.
            mime_type: `audio/mpeg`, `audio/wav`, `audio/mp4`, `audio/webm` or `audio/ogg`, as its first bytes say.
        """
        return self._uploads.audio_part(raw, mime_type)

    def cancel_turn(self, bridge_id: str) -> JsonObject:
        """End a turn. Cancelling an ended turn returns how it ended."""
        return self._request("POST", path_of("bridges", bridge_id, "cancel"))

    def list_journal_entries(self, bridge_id: str, *, cursor: str | None = None) -> JsonObject:
        """Return a page of a turn's edits in their order: `entries`, `nextCursor`."""
        params = without_none({"cursor": cursor})
        return self._request("GET", path_of("bridges", bridge_id, "journal"), params=params)

    def start_undo(
        self,
        bridge_id: str,
        *,
        through: str | None = None,
        idempotency_key: str | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Undo an ended turn's edits, newest first, down to the one with the effect key `through` (None: all).

        The stream is that of a turn of its own (decision 0117). `undo_turn` carries out what it asks for.
        """
        body, headers = without_none({"through": through}), without_none({"idempotency-key": idempotency_key})
        return self._transport.stream_events("POST", path_of("bridges", bridge_id, "undo"), body, headers=headers)

    def start_undo_detached(
        self,
        bridge_id: str,
        *,
        through: str | None = None,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """Start an undo without reading it: `{bridgeId, …}`."""
        headers = ACCEPT_JSON | without_none({"idempotency-key": idempotency_key})
        body = without_none({"through": through})
        return self._request("POST", path_of("bridges", bridge_id, "undo"), body, headers=headers)

    def list_tools(self, scope: str, *, names: str | None = None) -> list[JsonObject]:
        """Return the tools that a model is offered in this scope for the caller.

        Args:
            names: `seed` or `prefixed` tool names; None for those of the tenant (decision 0103).
        """
        headers = without_none({"fermata-tool-names": names})
        return require_member(self._request("GET", path_of("tools", scope), headers=headers), "tools", list)

    def _chat_body(
        self,
        conversation_id: str,
        prompt: str | None,
        content: list[JsonObject] | None,
        snapshot: Any,
        revision: str | None,
    ) -> JsonObject:
        if (prompt is None) == (content is None):
            raise ValueError("Give either a prompt or content.")
        body = {
            "conversationId": conversation_id,
            "prompt": prompt,
            "content": content,
            "snapshot": snapshot,
            "revision": revision,
        }
        return self._uploads.offload_snapshot(without_none(body))
