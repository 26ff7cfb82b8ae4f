"""Good days: text, browser tools, server tools, and all of them in one turn."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor, run_turn
from tests.e2e import checks
from tests.e2e.model import Model, calls, says
from tests.e2e.talk import DELETE, DOCUMENTS, INSERT, OK, READ, Talk, said, snapshot_of

PAGE = "<!doctype html><html><head><title>{0}</title></head><body><h1>{0}</h1><p>Words.</p></body></html>"


def test_a_text_turn_streams_its_text_and_ends_done(talk: Talk) -> None:
    outcome = talk.run(says("Good morning to you."))
    assert outcome.status == "done"
    assert outcome.view.text == "Good morning to you."
    view = checks.sound(talk)
    assert view == outcome.view


def test_a_page_is_edited_by_the_rules_of_the_demo_model(talk: Talk, tmp_path: Path) -> None:
    page = tmp_path / "shop.html"
    page.write_text(PAGE.format("Shop"))
    executor = HtmlFileExecutor(HtmlFile(page))
    outcome = run_turn(
        talk.client,
        "site",
        "Add a pricing section",
        conversation_id=talk.conversation,
        executor=executor,
        snapshot=executor.snapshot,
    )
    talk.bridge = str(outcome.view.bridge_id)
    assert outcome.status == "done"
    assert {"list_documents", "read_document", "insertHtml"} <= {badge.name for badge in outcome.view.tools}
    assert all(badge.state == "ok" for badge in outcome.view.tools)
    assert "pricing" in page.read_text().lower()
    assert "<p>Words.</p>" in page.read_text()
    assert checks.sound(talk) == outcome.view


def test_two_prompts_on_two_pages_give_the_two_edits_that_were_asked_for(
    new_talk: Callable[..., Talk], tmp_path: Path
) -> None:
    wanted = {"Alpha": "Change the heading to “Bread daily”", "Beta": "Add a section about opening hours"}
    after = {}
    for title, prompt in wanted.items():
        page = tmp_path / f"{title}.html"
        page.write_text(PAGE.format(title))
        executor = HtmlFileExecutor(HtmlFile(page))
        outcome = run_turn(new_talk().client, "site", prompt, executor=executor, snapshot=executor.snapshot)
        assert outcome.status == "done"
        after[title] = page.read_text()
    assert "<h1>Bread daily</h1>" in after["Alpha"]
    assert "opening hours" not in after["Alpha"].lower()
    assert "opening hours" in after["Beta"].lower()
    assert "<h1>Beta</h1>" in after["Beta"]


def test_a_text_turn_takes_four_transitions_and_a_browser_round_two_more(talk: Talk) -> None:
    talk.run(says("Hello."))
    assert checks.transitions(talk.cloud, talk.bridge) <= 4
    talk.run(calls(INSERT), calls(INSERT, DELETE), calls(DOCUMENTS), says("Done."), executor=lambda _: OK)
    assert checks.transitions(talk.cloud, talk.bridge) <= 4 + 2 * 2


def test_a_round_may_mix_server_and_browser_tools_in_any_order(talk: Talk) -> None:
    mixed = calls(DELETE, DOCUMENTS, INSERT, ("list_tokens", {}), READ, text="Several things.")
    reader = talk.start(mixed, says("All done."), snapshot=snapshot_of("Home"))
    for number in (1, 2, 3):
        talk.answer(reader.wait("toolRequest", number))
    reader.finish()
    told = [event["toolName"] for event in reader.events if event["type"] == "toolResult"]
    assert told == ["deleteNode", "list_documents", "insertHtml", "list_tokens", "read_document"]
    assert [event["toolName"] for event in reader.of_kind("toolRequest")] == [
        "deleteNode",
        "insertHtml",
        "read_document",
    ]
    assert len(talk.results()) == 5
    checks.sound(talk, reader)


def test_one_browser_call_is_open_at_a_time_and_no_result_comes_before_its_answer(talk: Talk) -> None:
    reader = talk.start(calls(INSERT, DELETE), says("Done."))
    first = reader.wait("toolRequest")
    pending = talk.client.bridge(talk.bridge)["pending"]
    assert [asked["requestId"] for asked in pending] == [first["requestId"]]
    assert not reader.of_kind("toolResult")
    assert len(talk.requests()) == 1
    talk.answer(first)
    second = reader.wait("toolRequest", 2)
    talk.answer(second, {"ok": False, "error": "There is no such node."})
    reader.finish()
    order = [event["type"] for event in reader.events if event["type"].startswith("tool")]
    assert order == ["toolCall", "toolCall", "toolRequest", "toolResult", "toolRequest", "toolResult"]
    done, failed = (said(block) for block in talk.results())
    assert json.loads(done) == OK["data"]
    assert failed == "There is no such node."
    checks.sound(talk, reader)


def test_a_snapshot_posted_with_an_answer_is_what_the_next_server_tool_reads(talk: Talk) -> None:
    reader = talk.start(
        calls(DOCUMENTS), calls(INSERT, DOCUMENTS), calls(DOCUMENTS), says("Done."), snapshot=snapshot_of("Before")
    )
    talk.answer(reader.wait("toolRequest"), OK, snapshot=snapshot_of("Before", "After"))
    reader.finish()
    first, _, second, third = (said(block) for block in talk.results())
    assert "After" not in first
    assert "After" in second
    assert "After" in third
    checks.sound(talk, reader)


def test_calls_the_model_gets_wrong_are_answered_to_it_and_the_turn_goes_on(talk: Talk) -> None:
    wrong = calls(("insertHtml", {"html": ""}), ("fly_to_the_moon", {}), DOCUMENTS)
    reader = talk.start(wrong, says("I see."), snapshot=snapshot_of("Home"))
    reader.finish()
    assert [event["ok"] for event in reader.of_kind("toolResult")] == [False, False, True]
    assert "Unknown tool" in said(talk.results()[1])
    assert not reader.of_kind("toolRequest")
    checks.sound(talk, reader)


def test_thinking_goes_back_to_the_provider_byte_for_byte(talk: Talk) -> None:
    thought = "Hmm: “naïve” 杭州 🦀 \\ \n end"
    reader = talk.start(
        calls(INSERT, text="Let me see.", thinking=thought), calls(DELETE, thinking="Next."), says("Done.")
    )
    talk.answer(reader.wait("toolRequest"))
    talk.answer(reader.wait("toolRequest", 2))
    reader.finish()
    blocks = [block for request in talk.requests()[1:] for block in _thinking(request)]
    assert [block["thinking"] for block in blocks] == [thought, thought, "Next."]
    assert all(block["signature"].startswith("demo.") for block in blocks)
    assert blocks[0] == blocks[1]
    assert "".join(event["text"] for event in reader.of_kind("reasoning")) == thought + "Next."
    checks.sound(talk, reader)


def _thinking(request: dict[str, object]) -> list[dict[str, str]]:
    body = request["body"]
    assert isinstance(body, dict)
    assistant = [message for message in body["messages"] if message["role"] == "assistant"]
    return [block for message in assistant for block in message["content"] if block["type"] == "thinking"]


@pytest.mark.parametrize(("scope", "tools"), [("site", 35), ("content", 15), ("plugin", 10), ("data", 0)])
def test_each_scope_talks_and_offers_its_tools(model: Model, talk: Talk, scope: str, tools: int) -> None:
    key = model.tell(says("Only words here."))
    outcome = run_turn(talk.client, scope, f"Hello [[script:{key}]]")
    assert outcome.view.text == "Only words here."
    assert len(model.requests(key)[0]["body"].get("tools", ())) == tools
