"""Test answers to tool requests: repeated, concurrent, early, late, and from other users."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ChatSession,
    result_text,
)
from tests.e2e.demo_model_client import text_step, tool_call_step

MOST_CAPABILITIES = ["ai.chat", "ai.tools.write", "site.read", "site.structure.edit"]


def run_concurrently(times: int, act: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(act, range(times)))


def test_five_equal_concurrent_answers_are_accepted_and_count_once(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answers = run_concurrently(5, lambda _: session.post_answer(request))
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"ok": True})] * 5
    reader.wait_for_end()
    assert len(session.tool_results()) == 1
    assert len(session.model_requests()) == 2
    turn_checks.check_turn(session, reader)


def test_of_five_different_concurrent_answers_four_get_a_conflict(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answers = run_concurrently(5, lambda number: session.post_answer(request, {"ok": True, "data": {"number": number}}))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused = [answer for answer in answers if answer.status_code == 409]
    assert not any("retry-after" in answer.headers for answer in refused), "waiting would not help"
    assert all(answer.json().keys() == {"error"} for answer in refused)
    reader.wait_for_end()
    (winner,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert result_text(session.tool_results()[0]) == f'{{"number":{winner}}}'
    turn_checks.check_turn(session, reader)


def test_a_late_repeated_answer_does_not_answer_another_request(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    first = reader.wait_for_event("toolRequest")
    session.answer_request(first)
    second = reader.wait_for_event("toolRequest", 2)
    assert session.post_answer(first).status_code == 200
    assert session.post_answer(first, {"ok": False, "error": "no"}).status_code == 409
    assert not reader.events_of_type("toolResult")[1:]
    assert [asked["requestId"] for asked in session.client.get_bridge(session.bridge)["pending"]] == [
        second["requestId"]
    ]
    session.answer_request(second)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_tool_request_cannot_be_answered_before_it_is_made(session: ChatSession) -> None:
    """A request id has a random part."""
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    first = reader.wait_for_event("toolRequest")
    guessed = first["requestId"].replace("1.0.", "1.1.")
    assert session.post_answer(guessed).status_code == 404
    session.answer_request(first)
    session.answer_request(reader.wait_for_event("toolRequest", 2))
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


@pytest.mark.parametrize(
    "unknown", ["1.0.nope", "2.0.nope", "7", "x", "-1.0.a", "999999.0.a", "1.0/../2", "\u0000", "🦀"]
)
def test_an_unknown_request_is_a_404(session: ChatSession, unknown: str) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answer = session.post_answer(unknown)
    assert answer.status_code == 404
    assert answer.json().keys() == {"error"}
    assert session.post_answer(request, bridge="no-such-bridge").status_code == 404
    session.answer_request(request)
    reader.wait_for_end()


def test_another_users_answer_gets_the_404_of_an_unknown_turn(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert (
        session.post_answer(request, token=cloud.sign_token(sub="bob", capabilities=MOST_CAPABILITIES)).status_code
        == 404
    )
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_user_who_manages_turns_may_answer_for_another_user(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    manager = cloud.sign_token(sub="meg", capabilities=[*MOST_CAPABILITIES, "ai.turns.manage"])
    assert session.post_answer(request, token=manager).status_code == 200
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_another_tenant_cannot_answer_even_with_every_capability(session: ChatSession, stranger: str) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert session.post_answer(request, token=stranger).status_code == 404
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_write_tool_needs_the_write_capability_and_a_read_tool_only_that_to_chat(
    session: ChatSession, cloud: LocalCloud
) -> None:
    reader = session.start_turn(tool_call_step(READ_CALL, INSERT_CALL), text_step("Done."))
    looker = cloud.sign_token(capabilities=["ai.chat"])
    assert session.post_answer(reader.wait_for_event("toolRequest"), token=looker).status_code == 200
    request = reader.wait_for_event("toolRequest", 2)
    assert session.post_answer(request, token=looker).status_code == 403
    assert session.post_answer(request, token=cloud.sign_token(capabilities=["ai.audit.read"])).status_code == 403
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_an_answer_that_comes_after_the_end_is_a_404(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    session.cancel_turn()
    reader.wait_for_end()
    assert session.post_answer(request).status_code == 404
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_repeating_an_answer_of_a_finished_turn_changes_nothing(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    session.answer_request(request)
    reader.wait_for_end()
    assert session.post_answer(request).status_code == 200
    assert session.post_answer(request, {"ok": False}).status_code == 409
    assert len(session.model_requests()) == 2
    turn_checks.check_turn(session, reader)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"ok": True}, '{"ok":true}'),
        ({"ok": True, "data": None}, '{"ok":true}'),
        ({"ok": True, "data": "naïve 🦀"}, "naïve 🦀"),
        ({"ok": False, "error": "No."}, "No."),
        ({"ok": False}, None),
    ],
)
def test_any_tool_result_reaches_the_model_in_a_readable_form(
    session: ChatSession, result: dict[str, Any], told: str | None
) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answer = session.post_answer(request, result)
    assert answer.status_code == 200, answer.text
    reader.wait_for_end()
    text = result_text(session.tool_results()[0])
    assert text if told is None else told in text
    assert reader.event_types[-1] == "done"


@pytest.mark.parametrize("result", [{"nodeIds": ["n1"]}, {}, {"ok": "yes"}, {"ok": True, "images": ["iVBORw0KGgo"]}])
def test_an_invalid_answer_is_refused_and_the_request_stays_open(session: ChatSession, result: dict[str, Any]) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    refused = session.post_answer(request, result)
    assert refused.status_code == 400
    assert "'result." in refused.json()["error"]
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_images_of_an_answer_reach_the_model(session: ChatSession) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    reader = session.start_turn(tool_call_step(READ_CALL), text_step("I see."))
    image = {"mimeType": "image/png", "data": pixel}
    session.answer_request(reader.wait_for_event("toolRequest"), OK_RESULT | {"images": [image]})
    reader.wait_for_end()
    (block,) = [part for part in session.tool_results()[0]["content"] if part["type"] == "image"]
    assert block["source"]["data"] == pixel
    turn_checks.check_turn(session, reader)
