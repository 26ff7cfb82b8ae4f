"""Test turns without faults: text, browser tools, server tools, and all of them in one turn."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fermata.domain.agent_ids import SCOPES
from fermata.tools.studio.tool_rules import ProjectPhase, list_offered_tools
from fermata_client import HtmlFile, HtmlFileExecutor, run_turn
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ChatSession,
    make_snapshot,
    result_text,
)
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.tool_contract import TOOL_CONTRACT

PAGE = "<!doctype html><html><head><title>{0}</title></head><body><h1>{0}</h1><p>Words.</p></body></html>"


def test_a_text_turn_streams_its_text_and_ends_done(session: ChatSession) -> None:
    outcome = session.run_turn(text_step("Good morning to you."))
    assert outcome.status == "done"
    assert outcome.view.text == "Good morning to you."
    view = turn_checks.check_turn(session)
    assert view == outcome.view


def test_the_demo_model_edits_a_page(session: ChatSession, tmp_path: Path) -> None:
    page = tmp_path / "shop.html"
    page.write_text(PAGE.format("Shop"))
    executor = HtmlFileExecutor(HtmlFile(page))
    outcome = run_turn(
        session.client,
        "site",
        "Add a pricing section",
        conversation_id=session.conversation,
        executor=executor,
        snapshot=executor.snapshot,
    )
    session.bridge = str(outcome.view.bridge_id)
    assert outcome.status == "done"
    assert {"list_documents", "read_document", "insertHtml"} <= {badge.name for badge in outcome.view.tool_calls}
    assert all(badge.state == "ok" for badge in outcome.view.tool_calls)
    assert "pricing" in page.read_text().lower()
    assert "<p>Words.</p>" in page.read_text()
    assert turn_checks.check_turn(session) == outcome.view


def test_concurrent_prompts_on_two_pages_make_their_own_edits(
    new_session: Callable[..., ChatSession], tmp_path: Path
) -> None:
    wanted = {"Alpha": "Change the heading to “Bread daily”", "Beta": "Add a section about opening hours"}
    after = {}
    for title, prompt in wanted.items():
        page = tmp_path / f"{title}.html"
        page.write_text(PAGE.format(title))
        executor = HtmlFileExecutor(HtmlFile(page))
        outcome = run_turn(new_session().client, "site", prompt, executor=executor, snapshot=executor.snapshot)
        assert outcome.status == "done"
        after[title] = page.read_text()
    assert "<h1>Bread daily</h1>" in after["Alpha"]
    assert "opening hours" not in after["Alpha"].lower()
    assert "opening hours" in after["Beta"].lower()
    assert "<h1>Beta</h1>" in after["Beta"]


def test_a_text_turn_takes_four_transitions_and_a_browser_round_two_more(session: ChatSession) -> None:
    session.run_turn(text_step("Hello."))
    assert turn_checks.count_transitions(session.cloud, session.bridge) <= 4
    session.run_turn(
        tool_call_step(INSERT_CALL),
        tool_call_step(INSERT_CALL, DELETE_CALL),
        tool_call_step(DOCUMENTS_CALL),
        text_step("Done."),
        executor=lambda _: OK_RESULT,
    )
    assert turn_checks.count_transitions(session.cloud, session.bridge) <= 4 + 2 * 2


def test_a_round_may_mix_server_and_browser_tools_in_any_order(session: ChatSession) -> None:
    mixed = tool_call_step(
        DELETE_CALL, DOCUMENTS_CALL, INSERT_CALL, ("list_tokens", {}), READ_CALL, text="Several things."
    )
    reader = session.start_turn(mixed, text_step("All done."), snapshot=make_snapshot("Home"))
    for number in (1, 2, 3):
        session.answer_request(reader.wait_for_event("toolRequest", number))
    reader.wait_for_end()
    tool_names = [event["toolName"] for event in reader.events if event["type"] == "toolResult"]
    assert tool_names == ["deleteNode", "list_documents", "insertHtml", "list_tokens", "read_document"]
    assert [event["toolName"] for event in reader.events_of_type("toolRequest")] == [
        "deleteNode",
        "insertHtml",
        "read_document",
    ]
    assert len(session.tool_results()) == 5
    turn_checks.check_turn(session, reader)


def test_one_browser_call_is_open_at_a_time_and_no_result_comes_before_its_answer(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    first = reader.wait_for_event("toolRequest")
    pending = session.client.get_bridge(session.bridge)["pending"]
    assert [asked["requestId"] for asked in pending] == [first["requestId"]]
    assert not reader.events_of_type("toolResult")
    assert len(session.model_requests()) == 1
    session.answer_request(first)
    second = reader.wait_for_event("toolRequest", 2)
    session.answer_request(second, {"ok": False, "error": "There is no such node."})
    reader.wait_for_end()
    order = [event["type"] for event in reader.events if event["type"].startswith("tool")]
    assert order == ["toolCall", "toolCall", "toolRequest", "toolResult", "toolRequest", "toolResult"]
    done, failed = (result_text(block) for block in session.tool_results())
    assert json.loads(done) == OK_RESULT["data"]
    assert failed == "There is no such node."
    turn_checks.check_turn(session, reader)


def test_a_snapshot_posted_with_an_answer_is_what_the_next_server_tool_reads(session: ChatSession) -> None:
    reader = session.start_turn(
        tool_call_step(DOCUMENTS_CALL),
        tool_call_step(INSERT_CALL, DOCUMENTS_CALL),
        tool_call_step(DOCUMENTS_CALL),
        text_step("Done."),
        snapshot=make_snapshot("Before"),
    )
    session.answer_request(reader.wait_for_event("toolRequest"), OK_RESULT, snapshot=make_snapshot("Before", "After"))
    reader.wait_for_end()
    first, _, second, third = (result_text(block) for block in session.tool_results())
    assert "After" not in first
    assert "After" in second
    assert "After" in third
    turn_checks.check_turn(session, reader)


def test_invalid_calls_are_answered_with_errors_and_the_turn_continues(session: ChatSession) -> None:
    wrong = tool_call_step(("insertHtml", {"html": ""}), ("fly_to_the_moon", {}), DOCUMENTS_CALL)
    reader = session.start_turn(wrong, text_step("I see."), snapshot=make_snapshot("Home"))
    reader.wait_for_end()
    assert [event["ok"] for event in reader.events_of_type("toolResult")] == [False, False, True]
    assert "Unknown tool" in result_text(session.tool_results()[1])
    assert not reader.events_of_type("toolRequest")
    turn_checks.check_turn(session, reader)


def test_thinking_goes_back_to_the_provider_byte_for_byte(session: ChatSession) -> None:
    thought = "Hmm: “naïve” 杭州 🦀 \\ \n end"
    reader = session.start_turn(
        tool_call_step(INSERT_CALL, text="Let me see.", thinking=thought),
        tool_call_step(DELETE_CALL, thinking="Next."),
        text_step("Done."),
    )
    session.answer_request(reader.wait_for_event("toolRequest"))
    session.answer_request(reader.wait_for_event("toolRequest", 2))
    reader.wait_for_end()
    blocks = [block for request in session.model_requests()[1:] for block in _thinking(request)]
    assert [block["thinking"] for block in blocks] == [thought, thought, "Next."]
    assert all(block["signature"].startswith("demo.") for block in blocks)
    assert blocks[0] == blocks[1]
    assert "".join(event["text"] for event in reader.events_of_type("reasoning")) == thought + "Next."
    turn_checks.check_turn(session, reader)


def _thinking(request: dict[str, object]) -> list[dict[str, str]]:
    body = request["body"]
    assert isinstance(body, dict)
    assistant = [message for message in body["messages"] if message["role"] == "assistant"]
    return [block for message in assistant for block in message["content"] if block["type"] == "thinking"]


@pytest.mark.parametrize("scope", sorted(set(SCOPES) - {"planner"}))  # whose answer is a plan: test_plans.py
def test_each_scope_runs_a_turn_and_offers_its_tools(model: DemoModelClient, session: ChatSession, scope: str) -> None:
    key = model.add_script(text_step("Only words here."))
    outcome = run_turn(session.client, scope, f"Hello [[script:{key}]]")
    assert outcome.view.text == "Only words here."
    offered = model.list_requests(key)[0]["body"].get("tools", ())
    if scope == "cms":  # so many that find_tools gives the rest
        assert "find_tools" in {tool["name"] for tool in offered}
    elif scope == "studio":  # its project decides, which another test of this tenant may have made
        assert {tool["name"] for tool in offered} <= set(list_offered_tools(ProjectPhase.UNINITIALIZED))
    else:
        assert len(offered) == len(TOOL_CONTRACT.get(scope, ()))
