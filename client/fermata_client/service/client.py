"""The HTTP calls of the service, one method each. Nothing here retries; `run_turn` does."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from fermata_client.service.errors import InvalidResponseError
from fermata_client.service.transport import (
    REQUEST_TIMEOUT_SECONDS,
    STREAM_IDLE_TIMEOUT_SECONDS,
    Event,
    Transport,
    parse_events,
)
from fermata_client.service.uploads import Uploads

__all__ = ["Event", "FermataClient", "parse_events"]

Json = dict[str, Any]
Kind = TypeVar("Kind")


class FermataClient:
    """One service, one caller. Threads may share it. Every method raises ClientError (errors.py)."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        stream_idle_timeout: float = STREAM_IDLE_TIMEOUT_SECONDS,
        request_timeout: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        self._way = Transport(
            url, token, transport=transport, stream_idle_timeout=stream_idle_timeout, request_timeout=request_timeout
        )
        self._call = self._way.request_json
        self._uploads = Uploads(self._way)

    @property
    def url(self) -> str:
        return self._way.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._way.close()

    # Conversations

    def list_conversations(self, scope: str, *, cursor: str | None = None, limit: int | None = None) -> Json:
        """One page of the caller's, the one that was used last first: `conversations`, and `nextCursor` if any."""
        return self._call("GET", "/conversations", params=_present(scope=scope, cursor=cursor, limit=limit))

    def create_conversation(
        self,
        scope: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> Json:
        """A new thread. Without a credential and model it uses the scope's default."""
        body = _present(scope=scope, title=title, credentialId=credential_id, modelId=model_id)
        return _part(self._call("POST", "/conversations", body), "conversation", dict)

    def get_conversation(self, conversation_id: str) -> Json:
        """The thread with its newest messages, and `activeTurn` while a turn runs in it."""
        return _part(self.list_messages(conversation_id), "conversation", dict)

    def list_messages(self, conversation_id: str, *, before: str | None = None, limit: int | None = None) -> Json:
        """One page of a thread: `conversation` with `messages`, and `nextCursor` for `before` if there are older."""
        return self._call("GET", _conversation(conversation_id), params=_present(before=before, limit=limit))

    def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> Json:
        """What is left out stays."""
        body = _present(title=title, credentialId=credential_id, modelId=model_id)
        return _part(self._call("PUT", _conversation(conversation_id), body), "conversation", dict)

    def delete_conversation(self, conversation_id: str) -> None:
        """A turn that runs in it ends. Deleting again is fine."""
        self._call("DELETE", _conversation(conversation_id))

    # Turns

    @contextmanager
    def start_turn(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        content: list[Json] | None = None,
        conversation_id: str | None = None,
        snapshot: Any = None,
        revision: str | None = None,
        idempotency_key: str | None = None,
        model: str | None = None,
    ) -> Iterator[Iterator[Event]]:
        """Start a turn and stream it. Without a conversation a new one is made, with `model` when given.

        The same `idempotency_key` with the same body joins the turn it started before.
        """
        conversation = conversation_id or str(self.create_conversation(scope, model_id=model)["id"])
        body = _chat(conversation, prompt, content, snapshot, revision)
        headers = _present(**{"idempotency-key": idempotency_key})
        with self._way.stream_events(
            "POST", f"/chat/{_step(scope)}", self._uploads.offload_snapshot(body), headers=headers
        ) as events:
            yield events

    def start_turn_detached(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        conversation_id: str,
        content: list[Json] | None = None,
        snapshot: Any = None,
        revision: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Start a turn without reading it: `{bridgeId, …}`. Read it with `events` whenever you like."""
        body = _chat(conversation_id, prompt, content, snapshot, revision)
        headers = _present(**{"idempotency-key": idempotency_key, "accept": "application/json"})
        return self._call("POST", f"/chat/{_step(scope)}", self._uploads.offload_snapshot(body), headers=headers)

    def get_bridge(self, bridge_id: str) -> Json:
        """Where the turn is: status, seq, round and the calls waiting for an answer."""
        return self._call("GET", f"/bridges/{_step(bridge_id)}")

    def stream_events(self, bridge_id: str, after: int = 0) -> AbstractContextManager[Iterator[Event]]:
        """The turn's events after number `after`, and then those still to come."""
        return self._way.stream_events("GET", f"/bridges/{_step(bridge_id)}/events", params={"after": after})

    def post_tool_result(
        self,
        bridge_id: str,
        request_id: str,
        result: dict[str, Any],
        snapshot: Any = None,
        revision: str | None = None,
    ) -> None:
        """Answer one tool request. Repeating the same answer is safe."""
        body = _present(bridgeId=bridge_id, requestId=request_id, result=result, snapshot=snapshot, revision=revision)
        self._call("POST", "/tool-result", self._uploads.offload_snapshot(body))

    def image_part(self, raw: bytes, mime_type: str) -> Json:
        """The part of a prompt's `content` that shows this image; a large one is uploaded for it."""
        return self._uploads.image_part(raw, mime_type)

    def cancel_turn(self, bridge_id: str) -> Json:
        """End the turn. Cancelling an ended turn says how it ended."""
        return self._call("POST", f"/bridges/{_step(bridge_id)}/cancel")

    def list_journal_entries(self, bridge_id: str, *, cursor: str | None = None) -> Json:
        """The turn's edits in their order: `entries`, and `nextCursor` for `cursor` if there are more."""
        return self._call("GET", f"/bridges/{_step(bridge_id)}/journal", params=_present(cursor=cursor))

    def start_undo(
        self,
        bridge_id: str,
        *,
        through: str | None = None,
        idempotency_key: str | None = None,
    ) -> AbstractContextManager[Iterator[Event]]:
        """Take an ended turn's edits back, the newest first, as far as the edit with the effect key `through`.

        What is streamed is a turn of its own; `undo_turn` carries out what it asks for.
        """
        body, headers = _present(through=through), _present(**{"idempotency-key": idempotency_key})
        return self._way.stream_events("POST", f"/bridges/{_step(bridge_id)}/undo", body, headers=headers)

    def start_undo_detached(
        self,
        bridge_id: str,
        *,
        through: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Start an undo without reading it: `{bridgeId, …}`."""
        body = _present(through=through)
        headers = _present(**{"idempotency-key": idempotency_key, "accept": "application/json"})
        return self._call("POST", f"/bridges/{_step(bridge_id)}/undo", body, headers=headers)

    def list_tools(self, scope: str, *, names: str | None = None) -> list[Json]:
        """What a model is offered in this scope when the caller asks it something: name, description, inputSchema,
        execution, capability and permissions of each tool. `names` are `seed` or `prefixed`, the tenant's if left out.
        """
        headers = _present(**{"fermata-tool-names": names})
        return _part(self._call("GET", f"/tools/{_step(scope)}", headers=headers), "tools", list)

    # Credentials, defaults, models

    def list_credentials(self) -> list[Json]:
        """The caller's own, the newest first. Nothing of a key is ever shown."""
        return _part(self._call("GET", "/credentials"), "credentials", list)

    def create_credential(
        self, provider_id: str, label: str, *, api_key: str | None = None, base_url: str | None = None
    ) -> Json:
        """A provider's key, or with `base_url` the address of a server and its key, if it needs one."""
        mode = "apiKey" if base_url is None else "baseUrl"
        body = {"providerId": provider_id, "authMode": mode, "displayLabel": label}
        body |= _present(apiKey=api_key, baseUrl=base_url)
        return _part(self._call("POST", "/credentials", body), "credential", dict)

    def update_credential(
        self,
        credential_id: str,
        *,
        label: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> Json:
        """What is left out stays. An empty key takes the key away, where there is an address."""
        body = _present(displayLabel=label, apiKey=api_key, baseUrl=base_url)
        return _part(self._call("PUT", _credential(credential_id), body), "credential", dict)

    def delete_credential(self, credential_id: str) -> None:
        """Refused (409) while a scope's default points at it."""
        self._call("DELETE", _credential(credential_id))

    def test_credential(self, credential_id: str) -> Json:
        """`{ok: true, modelCount}` or `{ok: false, error}`, told by its provider now."""
        return self._call("POST", f"{_credential(credential_id)}/test")

    def list_models(self, provider_id: str, credential_id: str) -> list[Json]:
        """The models a credential opens, in the order to show them."""
        path = f"/providers/{_step(provider_id)}/models"
        return _part(self._call("GET", path, params={"credentialId": credential_id}), "models", list)

    def get_defaults(self) -> Json:
        """`{credentialId, modelId}` of each scope that has a default."""
        return _part(self._call("GET", "/defaults"), "defaults", dict)

    def set_default(self, scope: str, credential_id: str, model_id: str) -> Json:
        body = {"credentialId": credential_id, "modelId": model_id}
        return _part(self._call("PUT", f"/defaults/{_step(scope)}", body), "default", dict)

    def clear_default(self, scope: str) -> None:
        """Clearing again is fine."""
        self._call("DELETE", f"/defaults/{_step(scope)}")

    # Usage

    def get_audit(self, *, since: str | None = None, tz: str | None = None) -> Json:
        """What the tenant used since an instant, by user, scope, model and the days of a time zone."""
        return self._call("GET", "/audit", params=_present(since=since, tz=tz))


def _conversation(conversation_id: str) -> str:
    return f"/conversations/{_step(conversation_id)}"


def _credential(credential_id: str) -> str:
    return f"/credentials/{_step(credential_id)}"


def _step(name: str) -> str:
    """One step of a path, whatever it holds."""
    return quote(name, safe="")


def _part(answer: Json, name: str, kind: type[Kind]) -> Kind:
    found = answer.get(name)
    if not isinstance(found, kind):
        raise InvalidResponseError(f"The service's answer has no {name!r}.")
    return found


def _chat(
    conversation: str, prompt: str | None, content: list[Json] | None, snapshot: Any, revision: str | None
) -> Json:
    if (prompt is None) == (content is None):
        raise ValueError("Give either a prompt or content.")
    said = {"conversationId": conversation, "prompt": prompt, "content": content}
    return _present(**said, snapshot=snapshot, revision=revision)


def _present(**members: Any) -> Json:
    return {name: value for name, value in members.items() if value is not None}
