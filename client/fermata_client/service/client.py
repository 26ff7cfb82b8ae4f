"""Client of the service's HTTP API, one method per operation. Nothing is retried here; `run_turn` retries."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, TypeVar

import httpx

from fermata_client.service.errors import InvalidResponseError
from fermata_client.service.json_types import Event, JsonObject
from fermata_client.service.paths import path_of
from fermata_client.service.transport import REQUEST_TIMEOUT_SECONDS, STREAM_IDLE_TIMEOUT_SECONDS, Transport
from fermata_client.service.uploads import Uploads

Member = TypeVar("Member")
Value = TypeVar("Value")

ACCEPT_JSON = {"accept": "application/json"}
"""With this header a turn is started without streaming its events."""


class FermataClient:
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
        self._transport = Transport(
            url, token, transport=transport, stream_idle_timeout=stream_idle_timeout, request_timeout=request_timeout
        )
        self._request = self._transport.request_json
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

    # Conversations

    def list_conversations(self, scope: str, *, cursor: str | None = None, limit: int | None = None) -> JsonObject:
        """Return a page of the caller's conversations, most recently used first: `conversations`, `nextCursor`."""
        params = _without_none({"scope": scope, "cursor": cursor, "limit": limit})
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
        response = self._request("POST", path_of("conversations"), _without_none(body))
        return _member(response, "conversation", dict)

    def get_conversation(self, conversation_id: str) -> JsonObject:
        """Return a conversation with its newest messages, and `activeTurn` while a turn runs in it."""
        return _member(self.list_messages(conversation_id), "conversation", dict)

    def list_messages(self, conversation_id: str, *, before: str | None = None, limit: int | None = None) -> JsonObject:
        """Return a page of messages: `conversation` with `messages`, and `nextCursor` (for `before`) to older ones."""
        params = _without_none({"before": before, "limit": limit})
        return self._request("GET", path_of("conversations", conversation_id), params=params)

    def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> JsonObject:
        body = _without_none({"title": title, "credentialId": credential_id, "modelId": model_id})
        response = self._request("PUT", path_of("conversations", conversation_id), body)
        return _member(response, "conversation", dict)

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
            content: the message as parts, to send images (`image_part`).
            conversation_id: None creates a conversation, with `model` if given.
            snapshot: the site as the editor has it; a large one is uploaded.
            revision: the document's revision in the editor.
            idempotency_key: with the same key and body, the request joins the turn it started before.
        """
        conversation = conversation_id or str(self.create_conversation(scope, model_id=model)["id"])
        body = self._chat_body(conversation, prompt, content, snapshot, revision)
        headers = _without_none({"idempotency-key": idempotency_key})
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
        headers = ACCEPT_JSON | _without_none({"idempotency-key": idempotency_key})
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
        self._request("POST", path_of("tool-result"), self._uploads.offload_snapshot(_without_none(body)))

    def image_part(self, raw: bytes, mime_type: str) -> JsonObject:
        """Return the part of a prompt's `content` that shows this image. A large image is uploaded for it."""
        return self._uploads.image_part(raw, mime_type)

    def cancel_turn(self, bridge_id: str) -> JsonObject:
        """End a turn. Cancelling an ended turn returns how it ended."""
        return self._request("POST", path_of("bridges", bridge_id, "cancel"))

    def list_journal_entries(self, bridge_id: str, *, cursor: str | None = None) -> JsonObject:
        """Return a page of a turn's edits in their order: `entries`, `nextCursor`."""
        params = _without_none({"cursor": cursor})
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
        body, headers = _without_none({"through": through}), _without_none({"idempotency-key": idempotency_key})
        return self._transport.stream_events("POST", path_of("bridges", bridge_id, "undo"), body, headers=headers)

    def start_undo_detached(
        self,
        bridge_id: str,
        *,
        through: str | None = None,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """Start an undo without reading it: `{bridgeId, …}`."""
        headers = ACCEPT_JSON | _without_none({"idempotency-key": idempotency_key})
        body = _without_none({"through": through})
        return self._request("POST", path_of("bridges", bridge_id, "undo"), body, headers=headers)

    def list_tools(self, scope: str, *, names: str | None = None) -> list[JsonObject]:
        """Return the tools that a model is offered in this scope for the caller.

        Args:
            names: `seed` or `prefixed` tool names; None for those of the tenant (decision 0103).
        """
        headers = _without_none({"fermata-tool-names": names})
        return _member(self._request("GET", path_of("tools", scope), headers=headers), "tools", list)

    # Credentials, defaults, models

    def list_credentials(self) -> list[JsonObject]:
        """Return the caller's own credentials, newest first. They never contain a key."""
        return _member(self._request("GET", path_of("credentials")), "credentials", list)

    def create_credential(
        self, provider_id: str, label: str, *, api_key: str | None = None, base_url: str | None = None
    ) -> JsonObject:
        """Store a provider's key, or with `base_url` the address of a server and its key, if it needs one."""
        body = {
            "providerId": provider_id,
            "authMode": "apiKey" if base_url is None else "baseUrl",
            "displayLabel": label,
            "apiKey": api_key,
            "baseUrl": base_url,
        }
        return _member(self._request("POST", path_of("credentials"), _without_none(body)), "credential", dict)

    def update_credential(
        self,
        credential_id: str,
        *,
        label: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> JsonObject:
        """Change a credential. An empty key removes the key, where the credential has an address."""
        body = _without_none({"displayLabel": label, "apiKey": api_key, "baseUrl": base_url})
        return _member(self._request("PUT", path_of("credentials", credential_id), body), "credential", dict)

    def delete_credential(self, credential_id: str) -> None:
        """Delete a credential. It is refused (409) while a scope's default points at it."""
        self._request("DELETE", path_of("credentials", credential_id))

    def test_credential(self, credential_id: str) -> JsonObject:
        """Ask the provider now: `{ok: true, modelCount}` or `{ok: false, error}`."""
        return self._request("POST", path_of("credentials", credential_id, "test"))

    def list_models(self, provider_id: str, credential_id: str) -> list[JsonObject]:
        """Return the models that a credential opens, in display order."""
        path = path_of("providers", provider_id, "models")
        return _member(self._request("GET", path, params={"credentialId": credential_id}), "models", list)

    def get_defaults(self) -> JsonObject:
        """Return `{credentialId, modelId}` of each scope that has a default."""
        return _member(self._request("GET", path_of("defaults")), "defaults", dict)

    def set_default(self, scope: str, credential_id: str, model_id: str) -> JsonObject:
        body = {"credentialId": credential_id, "modelId": model_id}
        return _member(self._request("PUT", path_of("defaults", scope), body), "default", dict)

    def clear_default(self, scope: str) -> None:
        """Remove a scope's default. Clearing again succeeds."""
        self._request("DELETE", path_of("defaults", scope))

    # Usage

    def get_audit(self, *, since: str | None = None, tz: str | None = None) -> JsonObject:
        """Return the tenant's usage by user, scope, model and day (in the time zone `tz`), since an ISO instant."""
        return self._request("GET", path_of("audit"), params=_without_none({"since": since, "tz": tz}))

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
        return self._uploads.offload_snapshot(_without_none(body))


def _member(response: JsonObject, name: str, kind: type[Member]) -> Member:
    value = response.get(name)
    if not isinstance(value, kind):
        raise InvalidResponseError(f"The service's answer has no {name!r}.")
    return value


def _without_none(members: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in members.items() if value is not None}
