"""Each generation of Instatic's browsers works with the service, unchanged except for its address."""

from typing import Any

import pytest

from fermata.domain.model_io import ReasoningDelta
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from tests.images import make_image, make_jpeg_header, open_image, to_base64
from tests.tenant_tokens import TokenSigner
from tests.unit.instatic.browser import Browser
from tests.unit.instatic.conftest import NAMES
from tests.unit.instatic.panel_runs import check_ended_turn
from tests.unit.instatic.schemas import NEWEST
from tests.unit.turns.stage import (
    ADA,
    OK,
    Stage,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)


def test_a_text_turn_is_shown_and_loaded_again(stage: Stage, browser: Browser, conversation: str) -> None:
    stage.script_replies("Good morning.")
    run = browser.send_prompt(conversation, "  Hello  ")
    assert (run.text, run.is_done, run.error, run.dropped) == ("Good morning.", True, None, [])
    assert run.kinds == ["bridgeReady", "text", "context", "usage", "done"]
    assert run.usage is not None
    assert (run.usage["promptTokens"], run.usage["costUsd"]) == (10, 0)
    assert run.context == [10]
    opened = browser.load_messages(conversation)
    texts = [(message["role"], message["content"][0]["text"]) for message in opened]
    assert texts == [("user", "Hello"), ("assistant", "Good morning.")]
    newest = browser.list_conversations()[0]
    assert (newest["id"], newest["title"], newest["contextTokens"]) == (conversation, "Hello", 10)
    check_ended_turn(stage, run)


def test_the_tenant_sets_the_thinking_budget_and_reasoning_is_not_shown(
    stage: Stage, browser: Browser, conversation: str
) -> None:
    update_tenant(stage.resources, ADA.tenant, limits=TenantLimits(thinking_tokens=2048))
    text, reply = reply_with_text("Good morning.")
    stage.script_replies([ReasoningDelta(text="A greeting."), text, reply])
    run = browser.send_prompt(conversation, "Hello")
    assert stage.driver.requests[0].thinking_tokens == 2048
    assert (run.text, run.dropped) == ("Good morning.", [])
    assert run.kinds == ["bridgeReady", "text", "context", "usage", "done"]


def test_a_warning_about_a_cut_prompt_is_shown_and_not_stored(
    stage: Stage, browser: Browser, conversation: str
) -> None:
    text, reply = reply_with_text("Good morning.")
    stage.script_replies([text, reply.model_copy(update={"warning": "The server cut the prompt."})])
    run = browser.send_prompt(conversation, "Hello")
    assert (run.text.strip(), run.dropped) == ("Good morning.\n\nThe server cut the prompt.", [])
    assert [message["content"][0]["text"] for message in browser.load_messages(conversation)] == [
        "Hello",
        "Good morning.",
    ]
    check_ended_turn(stage, run)


def test_tools_run_in_the_browser_call_by_call(
    stage: Stage, browser: Browser, conversation: str, generation: str
) -> None:
    insert, documents = NAMES[generation]
    inputs: list[Any] = []
    browser.tools[insert] = lambda value: inputs.append(value) or OK
    first, second = tool_call_block(insert, parentId="a", html="1"), tool_call_block(insert, parentId="b", html="2")
    stage.script_replies(reply_with_calls(first, tool_call_block(documents), second, text="I add two."), "Done.")
    run = browser.send_prompt(conversation, "Add two")
    assert (run.is_done, run.error, run.dropped) == (True, None, [])
    assert [value["parentId"] for value in inputs] == ["a", "b"]
    assert [(badge.name, badge.state) for badge in run.badges.values()] == [
        (insert, "ok"),
        (documents, "ok"),
        (insert, "ok"),
    ]
    assert run.text == "I add two.Done."
    assert run.usage is not None
    assert run.usage["promptTokens"] == 20
    opened = browser.load_messages(conversation)
    assert [message["role"] for message in opened] == ["user", *["assistant"] * 4, *["tool"] * 3, "assistant"]
    assert {message["toolName"] for message in opened} == {None, insert, documents}
    check_ended_turn(stage, run)


def test_a_failed_tool_is_reported_to_the_model_and_shown(
    stage: Stage, browser: Browser, conversation: str, insert: str
) -> None:
    browser.tools[insert] = lambda _: {"ok": False, "error": "There is no such node."}
    stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")), "Then not.")
    run = browser.send_prompt(conversation, "Add one")
    assert [(badge.state, badge.error) for badge in run.badges.values()] == [("failed", "There is no such node.")]
    assert run.is_done
    check_ended_turn(stage, run)


def test_a_provider_error_is_shown_literally(stage: Stage, browser: Browser, conversation: str) -> None:
    text, _ = reply_with_text("Half an ans")
    stage.script_replies([text, make_provider_error("provider_error", retryable=False)])
    run = browser.send_prompt(conversation, "Hello")
    assert run.text == "Half an ans"
    assert run.error == "The provider failed: provider_error."
    assert (run.kinds[-1], run.is_done, run.dropped) == ("error", False, [])
    check_ended_turn(stage, run)


class TestRequestsOfTheEditorItself:
    def test_an_open_editor_without_a_connector_asks_for_its_bridge_every_five_minutes(
        self, browser: Browser, generation: str
    ) -> None:
        asked = browser.hold_bridge(8 * 300)
        assert asked == [403] * (1 if generation == "0.0.6" else 8)

    def test_there_are_no_connectors(self, browser: Browser) -> None:
        answer = browser.http.get("/mcp/connectors")
        assert (answer.status_code, answer.json()) == (200, {"connectors": []})

    def test_a_foreign_session_under_the_same_cookie_name_is_refused(
        self, service: str, bakery: TokenSigner, generation: str
    ) -> None:
        with Browser(service, generation, "not-a-token-of-ours", bakery.origin) as stranger:
            assert stranger.http.get("/mcp/connectors").status_code == 401


@pytest.mark.parametrize("generation", [NEWEST], indirect=True)
class TestNewestGeneration:
    def test_images_are_sent_and_shown_again(self, stage: Stage, browser: Browser, conversation: str) -> None:
        stage.script_replies("Nice.")
        run = browser.send_prompt(conversation, "Look", to_base64(make_image(70, 80)), to_base64(make_image()))
        assert (run.text, run.error) == ("Nice.", None)
        content = browser.load_messages(conversation)[0]["content"]
        assert [block["kind"] for block in content] == ["text", "image", "image"]
        answer = browser.http.get(f"http://{browser.http.base_url.netloc.decode()}{content[1]['url']}")
        assert answer.status_code == 200
        assert open_image(answer.content).size == (70, 80)
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        check_ended_turn(stage, run)

    def test_a_missing_image_is_a_404_with_instatics_text(self, browser: Browser, conversation: str) -> None:
        answer = browser.http.get(f"/conversations/{conversation}/messages/none-0/images/1")
        assert (answer.status_code, answer.json()) == (404, {"error": "Conversation image not found"})

    @pytest.mark.parametrize(
        ("picture", "status"),
        [(b"<svg/>", 400), (make_image(2000, 10), 413), (make_jpeg_header(filler=1_600_000), 413)],
    )
    def test_an_invalid_image_is_refused_before_anything_is_stored(
        self, stage: Stage, browser: Browser, conversation: str, picture: bytes, status: int
    ) -> None:
        image = {"kind": "image", "mimeType": "image/jpeg", "data": to_base64(picture)}
        answer = browser.http.post("/chat/site", json={"conversationId": conversation, "content": [image]})
        assert answer.status_code == status
        assert stage.load_messages() == []

    def test_an_image_type_that_the_browser_cannot_show_is_refused(self, browser: Browser, conversation: str) -> None:
        image = {"kind": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}
        answer = browser.http.post("/chat/site", json={"conversationId": conversation, "content": [image]})
        assert answer.status_code == 400
        assert "image/jpeg" in answer.json()["error"]


def test_each_generation_is_offered_the_tools_it_has_and_receives_what_the_model_asks_for(
    stage: Stage, browser: Browser, conversation: str, generation: str
) -> None:
    name = {"0.0.6": "applyCss"}.get(generation, "site_apply_css")
    newest = {"operation": "remove-properties", "selectors": [".a"], "properties": ["top"]}
    arguments = newest if generation == NEWEST else {"css": ".a { top: 0 }"}
    inputs: list[Any] = []
    browser.tools[name] = lambda value: inputs.append(value) or OK
    stage.script_replies(reply_with_calls(tool_call_block(name, **arguments)), "Done.")
    run = browser.send_prompt(conversation, "Tidy up")
    assert (run.is_done, run.error, run.dropped) == (True, None, [])
    schema = next(tool.input_schema for tool in stage.driver.requests[0].tools if tool.name == name)
    assert list(schema["properties"]) == (
        ["operation", "css", "selectors", "properties"] if generation == NEWEST else ["css"]
    )
    assert inputs == [arguments if generation == NEWEST else arguments | {"operation": "merge"}]
    check_ended_turn(stage, run)


def test_the_model_reads_what_of_its_input_had_no_effect(
    stage: Stage, browser: Browser, conversation: str, insert: str
) -> None:
    inputs: list[Any] = []
    browser.tools[insert] = lambda value: inputs.append(value) or OK
    call = tool_call_block(insert, parentId="x", html="1", position="before")
    stage.script_replies(reply_with_calls(call), "Done.")
    run = browser.send_prompt(conversation, "Add one")
    assert (run.is_done, run.dropped, inputs) == (True, [], [{"parentId": "x", "html": "1"}])
    assert "ignoredInput" in stage.driver.requests[1].messages[-1].model_dump_json()
    assert "ignoredInput" not in stage.driver.requests[0].model_dump_json()
    check_ended_turn(stage, run)
