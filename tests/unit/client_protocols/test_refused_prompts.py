"""Prompts that are refused for what they are leave no conversation, whatever the client speaks."""

from typing import Any

import pytest

from fermata.client_protocols import client_turns
from fermata.conversations.conversation_store import list_conversations
from fermata.domain.errors import PaymentRequired
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.stage import Stage

EMPTY_AGUI = {"threadId": "t", "runId": "r", "tools": [], "context": [], "forwardedProps": {}, "state": {}}


def list_ids(stage: Stage) -> set[str]:
    page = list_conversations(stage.resources, stage.caller, "site", limit=50)
    return {conversation.id for conversation in page.conversations}


def refuse_for_budget(*_arguments: Any, **_members: Any) -> Any:
    raise PaymentRequired("The budget of this month is used up.")


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


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/agents/site", {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}),
        (
            "/api/agent/home/site",
            {"id": "chat", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]},
        ),
        ("/v1/chat/completions", {"model": "site", "messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/responses", {"model": "site", "input": "Hi"}),
        (
            "/v1/chat/completions",
            {"model": "site", "messages": [{"role": role, "content": "Hi"} for role in ("user", "assistant", "user")]},
        ),
        ("/agui/site", EMPTY_AGUI | {"messages": [{"id": "m", "role": "user", "content": "Hi"}]}),
    ],
)
def test_a_prompt_that_no_turn_may_answer_leaves_no_conversation(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    before = list_ids(stage)
    with monkeypatch.context() as refused:
        refused.setattr(client_turns, "start_turn", refuse_for_budget)
        assert requester.send("POST", path, json=body).status_code == 402
    assert list_ids(stage) == before
    stage.script_replies("Hello.")
    assert requester.send("POST", path, json=body).status_code == 200
    assert len(list_ids(stage)) == len(before) + 1


@pytest.mark.parametrize("path", ["/api/agents/site", "/api/agent/home/site"])
def test_a_prompt_whose_file_cannot_be_read_leaves_no_conversation(
    stage: Stage, requester: Requester, path: str
) -> None:
    before = list_ids(stage)
    file = {"type": "file", "mediaType": "image/png", "url": "https://169.254.169.254/a.png"}
    body = {"id": "chat", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Look"}, file]}]}
    refused = requester.send("POST", path, json=body)
    assert (refused.status_code, "url_not_public" in refused.text) == (400, True)
    assert list_ids(stage) == before


def test_answers_to_a_chat_that_is_not_there_begin_none(stage: Stage, requester: Requester) -> None:
    before = list_ids(stage)
    part = {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {}, "output": 1}
    answers = {"id": "chat", "messages": [{"id": "m", "role": "assistant", "parts": [part]}]}
    assert requester.send("POST", "/api/agent/home/site", json=answers).status_code == 400
    result = {"id": "r", "role": "tool", "toolCallId": "c", "content": "1"}
    assert requester.send("POST", "/agui/site", json=EMPTY_AGUI | {"messages": [result]}).status_code == 400
    assert list_ids(stage) == before


def test_a_conversation_that_was_there_stays_when_its_prompt_is_refused(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_turns, "start_turn", refuse_for_budget)
    messages = [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]
    body = {"id": stage.conversation.id, "messages": messages}
    assert requester.send("POST", "/api/agent/home/site", json=body).status_code == 402
    assert stage.conversation.id in list_ids(stage)
