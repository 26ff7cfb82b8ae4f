"""Prompts that are refused for what they are leave no conversation, whatever the client speaks."""

from typing import Any

import pytest

from tests.unit.client_protocols.conftest import Requester

EMPTY_AGUI = {"threadId": "t", "runId": "r", "tools": [], "context": [], "forwardedProps": {}, "state": {}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/agents/site", {"messages": [{"role": "system", "parts": []}]}),
        ("/api/agents/site", {"messages": [{"role": "user", "parts": []}]}),
        ("/api/agent/home/site", {"id": "chat", "messages": [{"role": "user", "parts": [7]}]}),
        ("/v1/chat/completions", {"model": "site", "messages": [{"role": "user", "content": []}]}),
        ("/v1/responses", {"model": "site", "input": [{"role": "user", "content": []}]}),
        ("/agui/site", EMPTY_AGUI | {"messages": []}),
        ("/agui/site", EMPTY_AGUI | {"messages": [{"id": "m", "role": "user", "content": " "}]}),
    ],
)
def test_a_prompt_that_says_nothing_begins_no_conversation(
    requester: Requester, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    def begin(*_arguments: Any, **_members: Any) -> None:
        raise AssertionError("a conversation was begun")

    monkeypatch.setattr("fermata.client_protocols.chat_conversations.create_conversation", begin)
    assert requester.send("POST", path, json=body).status_code == 400
