"""A conversation goes on in every dialect, whichever it was in before; two clients of it at once; wrong inputs."""

import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from fermata.conversations.message_store import load_messages
from fermata.domain.blocks import TextBlock
from fermata.wire.auth.tenant_store import get_tenant
from fermata.wire.bodies.prompt_parts import MAX_PROMPT_CHARACTERS
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

Json = dict[str, Any]
Post = Callable[[Requester, str, str], httpx.Response]


def post_native(requester: Requester, conversation: str, text: str) -> httpx.Response:
    body = {"conversationId": conversation, "prompt": text}
    return requester.send("POST", "/admin/api/ai/chat/site", json=body)


def post_to_sdk(requester: Requester, conversation: str, text: str) -> httpx.Response:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    body = {"id": conversation, "messages": [message], "trigger": "submit-message"}
    return requester.send("POST", "/api/agent/home/site", json=body)


def post_to_agui(requester: Requester, conversation: str, text: str) -> httpx.Response:
    messages = [{"id": text, "role": "user", "content": text}]
    body = {"threadId": conversation, "runId": text, "messages": messages, "tools": []}
    return requester.send("POST", "/agui/site", json=body)


def post_completion(requester: Requester, conversation: str, text: str) -> httpx.Response:
    messages = [{"role": "user", "content": text}]
    body = {"model": "site", "messages": messages, "metadata": {"conversation": conversation}}
    return requester.send("POST", "/v1/chat/completions", json=body)


def post_response(requester: Requester, conversation: str, text: str) -> httpx.Response:
    body = {"model": "site", "input": text, "conversation": {"id": conversation}}
    return requester.send("POST", "/v1/responses", json=body)


DIALECTS: dict[str, Post] = {
    "native": post_native,
    "instatic": post_native,
    "sdk": post_to_sdk,
    "agui": post_to_agui,
    "chat": post_completion,
    "responses": post_response,
}


def set_dialect(stage: Stage, name: str) -> None:
    """Let the workspace's editors speak a dialect."""
    tenant = get_tenant(stage.resources, "bakery")
    object.__setattr__(tenant, "dialect", "instatic" if name == "instatic" else "fermata")


def walk_all_pairs(names: list[str]) -> list[str]:
    """Return a walk in which each name follows each other one once."""
    open_pairs = {name: [other for other in names if other != name] for name in names}
    path, walk = [names[0]], []
    while path:
        if nexts := open_pairs[path[-1]]:
            path.append(nexts.pop())
        else:
            walk.append(path.pop())
    return walk[::-1]


def list_texts(stage: Stage) -> list[str]:
    """Return the texts of the newest request to the model."""
    messages = stage.driver.requests[-1].messages
    return [block.text for message in messages for block in message.content if isinstance(block, TextBlock)]


def test_a_conversation_goes_on_in_each_dialect_behind_each_other(stage: Stage, requester: Requester) -> None:
    conversation = stage.turn.conversation if stage._turn else stage.new_conversation().id
    walk = walk_all_pairs(list(DIALECTS))
    assert len({*itertools.pairwise(walk)}) == 30
    for number, name in enumerate(walk):
        set_dialect(stage, name)
        stage.script_replies(reply_with_calls(tool_call_block("list_documents"), text="I look."), f"Answer {number}.")
        response = DIALECTS[name](requester, conversation, f"Prompt {number}")
        assert response.status_code == 200, (walk[: number + 1], response.text)
        assert f"Answer {number}." in response.text, walk[: number + 1]
        assert stage.turn.conversation == conversation, walk[: number + 1]
        said = list_texts(stage)
        expected = [text for one in range(number) for text in (f"Prompt {one}", "I look.", f"Answer {one}.")]
        assert [text for text in said if text in expected][: len(expected)] == expected, walk[: number + 1]
    stored = load_messages(stage.resources, "bakery", conversation)
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"] * len(walk)


WAITING = ("sdk", "agui", "chat", "responses")


@pytest.mark.parametrize("second", ["native", *WAITING])
@pytest.mark.parametrize("first", WAITING)
def test_a_prompt_of_another_dialect_ends_the_turn_that_waits_for_a_client(
    first: str, second: str, stage: Stage, requester: Requester
) -> None:
    conversation = stage.new_conversation().id
    stage.script_replies(reply_with_calls(tool_call_block("site_read_document")), "Here.")
    assert DIALECTS[first](requester, conversation, "Read it").status_code == 200
    waiting = stage.turn
    response = DIALECTS[second](requester, conversation, "Never mind")
    if second == "native":  # an editor says whether it interrupts
        assert response.status_code == 409, response.text
        return
    assert response.status_code == 200, response.text
    assert "Here." in response.text
    assert stage.turn.id != waiting.id


class RequesterWithHeader:
    """Sends each request with a header that says what becomes of a busy conversation."""

    def __init__(self, requester: Requester, choice: str) -> None:
        self.requester, self.choice = requester, choice

    def send(self, method: str, path: str, **members: Any) -> httpx.Response:
        return self.requester.send(method, path, headers={"Fermata-When-Busy": self.choice}, **members)


@pytest.mark.parametrize("dialect", WAITING)
@pytest.mark.parametrize(("choice", "status"), [("reject", 409), ("interrupt", 200), ("enqueue", 400)])
def test_a_chat_client_says_whether_its_prompt_ends_the_running_turn(
    dialect: str, choice: str, status: int, stage: Stage, requester: Requester
) -> None:
    conversation = stage.new_conversation().id
    stage.script_replies(reply_with_calls(tool_call_block("site_read_document")), "Here.")
    assert DIALECTS[dialect](requester, conversation, "Read it").status_code == 200
    waiting = stage.turn
    careful: Any = RequesterWithHeader(requester, choice)
    response = DIALECTS[dialect](careful, conversation, "Never mind")
    assert response.status_code == status, response.text
    assert (stage.turn.id == waiting.id) == (status != 200)


HUGE = "x" * (MAX_PROMPT_CHARACTERS + 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_prompt_that_is_too_long_is_refused_with_words_and_starts_nothing(
    dialect: str, stage: Stage, requester: Requester
) -> None:
    set_dialect(stage, dialect)
    response = DIALECTS[dialect](requester, stage.new_conversation().id, HUGE)
    assert response.status_code in (400, 413), response.text[:200]
    assert not stage.driver.requests
    assert len(response.text) < 2_000


WRONG_VALUES: list[Any] = [None, True, 7, "text", [], [None], [[]], [7], {}, {"role": "user"}, [{"role": ["user"]}]]
PATHS = {
    "/api/agent/home/site": {"id": "c", "trigger": "submit-message"},
    "/api/agents/site": {"id": "c"},
    "/agui/site": {"threadId": "t", "runId": "r", "tools": []},
    "/v1/chat/completions": {"model": "site"},
    "/v1/responses": {"model": "site"},
}


@pytest.mark.parametrize("path", PATHS)
def test_messages_of_wrong_types_are_refused(path: str, stage: Stage, requester: Requester) -> None:
    member = "input" if path.endswith("responses") else "messages"
    stage.script_replies(*["Hi."] * 2)
    for value in WRONG_VALUES:
        body = PATHS[path] | {member: value}
        status = requester.send("POST", path, json=body).status_code
        assert status in (400, 413) or (value == "text" and member == "input"), (value, status)


WRONG_MEMBERS: Json = {
    "tools": [7, "x", {}, [7], [{"type": 7}], [{"type": "function", "function": 7}], [{"function": {"name": {}}}]],
    "previous_response_id": [7, {}, "", "resp_"],
    "text": [7, {"format": 7}, {"format": {"type": "json_schema", "schema": []}}],
    "conversation": [7, {"id": 7}, []],
    "background": ["yes", 7],
    "input": [[{"type": "mcp_approval_response"}], [{"type": "mcp_approval_response", "approve": True}]],
}


@pytest.mark.parametrize("member", WRONG_MEMBERS)
def test_members_of_wrong_types_are_refused_in_responses(member: str, stage: Stage, requester: Requester) -> None:
    for value in WRONG_MEMBERS[member]:
        stage.script_replies("Hi.")
        body = {"model": "site", "input": "Hello"} | {member: value}
        response = requester.send("POST", "/v1/responses", json=body)
        assert response.status_code == 400 or not value, (value, response.text)
        stage.driver.scripts.clear()
