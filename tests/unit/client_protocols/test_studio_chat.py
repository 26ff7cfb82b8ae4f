"""The studio's own clients ask its agent: frames, conversations, limits (decision 0474)."""

import json
from typing import Any

import pytest

from fermata.client_protocols import studio_chat
from fermata.content.change_sets.change_set_store import list_change_sets
from fermata.content.content_space import SpaceKey
from fermata.domain.events import ToolResultEvent
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.studio_clients import (
    CHAT,
    CONVERSATIONS,
    FAQ,
    PROJECT,
    StudioClient,
    fill_project,
    read_answer,
)
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

SAVE = {"model": "faq", "locale": "en", "data": {FAQ.id: {"answer": "No."}}}
OPEN_PAGE = {"activeModelId": "faq", "activeLocale": "tr", "panelState": "model", "contextItems": [{"type": "entry"}]}


@pytest.fixture
def client(stage: Stage, requester: Requester) -> StudioClient:
    """A client of an editor in a project whose changes are reviewed."""
    fill_project(stage)
    return StudioClient(stage, requester).with_rights("ai.content.write")


def test_g104_a_turn_with_a_tool_is_told_in_frames_without_names(client: StudioClient) -> None:
    call = tool_call_block("save_content", **SAVE)
    client.stage.script_replies(reply_with_calls(call, text="I change it."), "It waits for a review.")
    types = client.say("Change the answer", context=OPEN_PAGE)
    assert types == ["conversation", "text", "tool_use", "tool_result", "text", "done"]
    assert client.frame("tool_use") == {"type": "tool_use", "id": call.tool_call_id, "name": "save_content"}
    result = client.frame("tool_result")
    assert (result["id"], result["name"], result["result"]["merged"]) == (call.tool_call_id, "save_content", False)
    [branch] = list_change_sets(client.stage.resources, PROJECT)
    assert client.frame("done") == {
        "type": "done",
        "usage": {"inputTokens": 20, "outputTokens": 10},
        "affected": {
            "models": ["faq"],
            "locales": ["en"],
            "snapshotChanged": False,
            "branchesChanged": True,
            "branch": branch.branch,
        },
    }
    assert read_answer(client.stage) == "Yes.", "an editor's change waits for a review"


def test_a_change_of_an_admin_is_merged_and_the_client_is_told_so(client: StudioClient) -> None:
    admin = client.with_rights("ai.content.manage")
    admin.stage.script_replies(reply_with_calls(tool_call_block("save_content", **SAVE)), "Done.")
    admin.say("Change the answer")
    assert admin.frame("tool_result")["result"]["merged"] is True
    assert read_answer(admin.stage) == "No."


def test_g042_the_locale_is_that_of_the_input_or_else_of_the_page(client: StudioClient) -> None:
    without = {"model": "faq", "data": {FAQ.id: {"answer": "Hayır."}}}
    client.stage.script_replies(reply_with_calls(tool_call_block("save_content", **without)), "Done.")
    client.say("Change the answer", context=OPEN_PAGE)
    assert client.frame("done")["affected"]["locales"] == ["tr"]


def test_g096_a_tool_that_fails_is_a_result_and_what_it_may_have_changed_is_told(
    client: StudioClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("fermata.tools.studio.content_tools.write_documents", fail)
    client.stage.script_replies(reply_with_calls(tool_call_block("save_content", **SAVE)), "It failed.")
    types = client.say("Change the answer")
    assert types == ["conversation", "tool_use", "tool_result", "text", "done"]
    assert client.frame("tool_result")["result"]["error"]
    assert client.frame("done")["affected"]["models"] == ["faq"]


def test_g099_the_client_is_told_all_of_a_result_of_which_the_model_reads_a_part(client: StudioClient) -> None:
    long = {**SAVE, "data": {FAQ.id: {"answer": "crumb " * 900}}}
    client.stage.script_replies(
        reply_with_calls(tool_call_block("save_content", **long)),
        reply_with_calls(tool_call_block("brain_query", model="faq", locale="en")),
        "Done.",
    )
    client.with_rights("ai.content.manage").say("Make it long")
    results = [event for event in client.stage.events() if isinstance(event, ToolResultEvent)]
    assert len(json.dumps(results[-1].output)) > 5_000
    blocks = [block for message in client.stage.driver.requests[-1].messages for block in message.content]
    read = [block.data for block in blocks if block.kind == "toolResult"][-1]
    assert read["truncated"] is True
    assert len(json.dumps(read)) < 2_600


def test_g100_a_call_that_the_phase_refuses_is_a_result_with_an_advice(client: StudioClient) -> None:
    call = tool_call_block("init_project", stack="nuxt", locales=["en"], domains=["site"])
    client.stage.script_replies(reply_with_calls(call), "It is there already.")
    types = client.with_rights("ai.content.manage")
    assert types.say("Set it up") == ["conversation", "tool_use", "tool_result", "text", "done"]
    result = types.frame("tool_result")["result"]
    assert {"error", "suggestion"} <= result.keys()
    assert types.frame("done")["affected"] == {
        "models": [], "locales": [], "snapshotChanged": False, "branchesChanged": False,
    }  # fmt: skip


def test_g097_and_g098_a_turn_asks_five_times_each_for_a_short_answer(client: StudioClient) -> None:
    searches = [reply_with_calls(tool_call_block("brain_search", query=word)) for word in ("a", "b", "c", "d")]
    client.stage.script_replies(*searches, "I found it.")
    assert client.say("Search")[-2:] == ["text", "done"]
    requests = client.stage.driver.requests
    assert [request.call_tools for request in requests] == [True, True, True, True, False]
    assert {request.max_tokens for request in requests} == {4_096}


def test_a_conversation_goes_on_with_what_was_said_and_done(client: StudioClient) -> None:
    call = tool_call_block("save_content", **SAVE)
    client.stage.script_replies(reply_with_calls(call, text="I change it."), "It waits.", "You asked for a change.")
    client.say("Change the answer")
    first = client.conversation
    client.say("What did I ask?")
    assert client.conversation == first
    told = client.stage.driver.requests[-1].messages
    texts = [block.text for message in told for block in message.content if block.kind == "text"]
    assert texts == ["Change the answer", "I change it.", "It waits.", "What did I ask?"]
    page = client.get(f"{CONVERSATIONS}/{first}/messages").json()
    assert [(one["role"], one["content"]) for one in page["messages"]] == [
        ("user", "Change the answer"), ("assistant", "I change it."), ("assistant", "It waits."),
        ("user", "What did I ask?"), ("assistant", "You asked for a change."),
    ]  # fmt: skip
    [shown] = page["messages"][1]["toolCalls"]
    assert (shown["name"], shown["result"]["merged"]) == ("save_content", False)
    older = client.get(f"{CONVERSATIONS}/{first}/messages", limit="2").json()
    assert [one["content"] for one in older["messages"]] == ["What did I ask?", "You asked for a change."]
    earlier = client.get(f"{CONVERSATIONS}/{first}/messages", limit="2", before=older["before"]).json()
    assert [one["content"] for one in earlier["messages"]] == ["It waits."]
    whole = client.get(f"{CONVERSATIONS}/{first}/messages", limit="1", before=earlier["before"]).json()
    assert whole["messages"][0] == page["messages"][0]
    assert whole["messages"][1]["toolCalls"] == [shown], "results come with their calls"
    assert [one["id"] for one in client.get(CONVERSATIONS).json()["conversations"]] == [first]


def test_a_conversation_of_somebody_else_means_a_new_one(client: StudioClient) -> None:
    client.stage.script_replies("Hello.", "Hello.", "Hello.")
    client.say("Hello")
    own = client.conversation
    site = client.stage.new_conversation().id
    for foreign in ("none", site):
        client.say("Hello", conversationId=foreign)
        assert client.conversation not in (own, foreign)
    assert client.get(f"{CONVERSATIONS}/{site}/messages").status_code == 404


def test_a_conversation_belongs_to_its_project(client: StudioClient) -> None:
    fill_project(client.stage, space=SpaceKey("bakery", "studio", "next"))
    client.stage.script_replies("Hello.", "Hello.")
    client.say("Hello")
    path = "/api/workspaces/bakery/projects/studio.next"
    assert client.get(f"{path}/conversations/{client.conversation}/messages").status_code == 404
    assert client.get(f"{path}/conversations").json()["conversations"] == []
    body = {"message": "Hello", "conversationId": client.conversation}
    assert client.requester.send("POST", f"{path}/chat", json=body).status_code == 200
    assert client.stage.turn.space == "studio/next"
    assert client.stage.turn.conversation != client.conversation


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (CHAT.replace("bakery", "other"), 404),
        (CHAT.replace("studio", "ghost"), 404),
        (CHAT.replace("studio", "A_B"), 400),
        (CHAT.replace("studio", "studio.main.x"), 400),
    ],
)
def test_another_workspace_or_project_is_not_found(client: StudioClient, path: str, status: int) -> None:
    response = client.requester.send("POST", path, json={"message": "Hello"})
    assert response.status_code == status
    assert response.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": "  "},
        {"message": 5},
        {"message": "a", "context": []},
        {"message": "a", "model": ""},
        {"message": "a", "context": {"contextItems": [{}] * 21}},
    ],
)
def test_a_body_that_is_no_message_is_refused(client: StudioClient, body: Any) -> None:
    assert client.requester.send("POST", CHAT, json=body).status_code == 400
    assert client.get(CONVERSATIONS).json()["conversations"] == []


def test_who_may_not_read_content_may_not_ask(client: StudioClient) -> None:
    assert client.with_rights().post("Hello").status_code == 403


def test_a_model_is_one_of_the_default_credential(client: StudioClient) -> None:
    client.stage.script_replies("Hello.", "Hello.")
    client.say("Hello", model="model-2")
    assert client.stage.turn.model == "model-2"
    client.say("Hello")
    assert client.stage.turn.model == "model-2", "the conversation keeps it"


def test_the_same_request_again_joins_its_turn(client: StudioClient) -> None:
    client.stage.script_replies("Hello.")
    key = {"idempotency-key": "one"}
    first, again = client.post("Hello", key), client.post("Hello", key)
    assert (first.status_code, again.text) == (200, first.text)
    assert len(client.get(CONVERSATIONS).json()["conversations"]) == 1


def test_so_many_messages_are_answered_in_a_minute_and_a_refused_one_leaves_nothing(
    client: StudioClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert studio_chat.STUDIO_MESSAGES_PER_MINUTE == 10
    monkeypatch.setattr(studio_chat, "STUDIO_MESSAGES_PER_MINUTE", 2)
    update_tenant(client.stage.resources, "bakery", limits=TenantLimits(user_prompts_per_minute=None))
    client.stage.script_replies("Hello.", "Hello.")
    assert [client.post("Hello").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.post("Hello")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert "(2)" in refused.json()["error"]
    assert len(client.get(CONVERSATIONS).json()["conversations"]) == 2


def test_a_turn_that_fails_says_so_and_what_was_done_before(client: StudioClient) -> None:
    call = tool_call_block("save_content", **SAVE)
    client.stage.script_replies(reply_with_calls(call), [make_provider_error("provider_auth", retryable=False)])
    types = client.say("Change the answer")
    assert types == ["conversation", "tool_use", "tool_result", "error", "done"]
    assert client.frame("error")["message"]
    assert client.frame("done")["affected"]["branchesChanged"] is True


def test_a_stream_that_broke_is_read_again_only_while_its_turn_runs(client: StudioClient) -> None:
    client.stage.script_replies("Hello.")
    client.say("Hello")
    assert client.get(CHAT, conversationId=client.conversation).status_code == 204
    assert client.get(CHAT, conversationId="none").status_code == 404
    assert client.get(CHAT).status_code == 400
