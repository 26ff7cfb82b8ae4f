"""Answers to tool requests: repeated, in a crowd, too early, too late, and from people they are not asked of."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import (
    DELETE_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ConversationDriver,
    result_text,
)
from tests.e2e.demo_model_client import text_step, tool_call_step

MOST_CAPABILITIES = ["ai.chat", "ai.tools.write", "site.read", "site.structure.edit"]


def run_concurrently(times: int, act: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(act, range(times)))


def test_the_same_answer_five_times_at_once_is_taken_once_and_fine_each_time(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answers = run_concurrently(5, lambda _: talk.post_answer(request))
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"ok": True})] * 5
    reader.wait_for_end()
    assert len(talk.tool_results()) == 1
    assert len(talk.model_requests()) == 2
    turn_checks.check_turn(talk, reader)


def test_of_five_different_answers_at_once_one_counts_and_four_are_told_so(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answers = run_concurrently(5, lambda number: talk.post_answer(request, {"ok": True, "data": {"number": number}}))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused = [answer for answer in answers if answer.status_code == 409]
    assert all(answer.headers["retry-after"] for answer in refused)
    assert all(answer.json().keys() == {"error"} for answer in refused)
    reader.wait_for_end()
    (winner,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert result_text(talk.tool_results()[0]) == f'{{"number":{winner}}}'
    turn_checks.check_turn(talk, reader)


def test_an_answer_belongs_to_its_own_request_however_late_it_is_repeated(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    first = reader.wait_for_event("toolRequest")
    talk.answer_request(first)
    second = reader.wait_for_event("toolRequest", 2)
    assert talk.post_answer(first).status_code == 200
    assert talk.post_answer(first, {"ok": False, "error": "no"}).status_code == 409
    assert not reader.events_of_type("toolResult")[1:]
    assert [asked["requestId"] for asked in talk.client.get_bridge(talk.bridge)["pending"]] == [second["requestId"]]
    talk.answer_request(second)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_a_request_that_was_not_made_yet_cannot_be_answered(talk: ConversationDriver) -> None:
    """Its id holds a part that nobody knows before it is asked."""
    reader = talk.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    first = reader.wait_for_event("toolRequest")
    guessed = first["requestId"].replace("1.0.", "1.1.")
    assert talk.post_answer(guessed).status_code == 404
    talk.answer_request(first)
    talk.answer_request(reader.wait_for_event("toolRequest", 2))
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


@pytest.mark.parametrize(
    "unknown", ["1.0.nope", "2.0.nope", "7", "x", "-1.0.a", "999999.0.a", "1.0/../2", "\u0000", "🦀"]
)
def test_an_unknown_request_is_a_404(talk: ConversationDriver, unknown: str) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answer = talk.post_answer(unknown)
    assert answer.status_code == 404
    assert answer.json().keys() == {"error"}
    assert talk.post_answer(request, bridge="no-such-bridge").status_code == 404
    talk.answer_request(request)
    reader.wait_for_end()


def test_another_users_answer_is_refused_as_if_there_were_no_such_turn(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert (
        talk.post_answer(request, token=cloud.sign_token(sub="bob", capabilities=MOST_CAPABILITIES)).status_code == 404
    )
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_who_manages_turns_may_answer_for_another_user(talk: ConversationDriver, cloud: LocalCloud) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    manager = cloud.sign_token(sub="meg", capabilities=[*MOST_CAPABILITIES, "ai.turns.manage"])
    assert talk.post_answer(request, token=manager).status_code == 200
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_another_tenant_cannot_answer_even_with_every_capability(talk: ConversationDriver, stranger: str) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert talk.post_answer(request, token=stranger).status_code == 404
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_a_change_needs_the_right_to_write_and_a_look_needs_only_the_right_to_chat(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(tool_call_step(READ_CALL, INSERT_CALL), text_step("Done."))
    looker = cloud.sign_token(capabilities=["ai.chat"])
    assert talk.post_answer(reader.wait_for_event("toolRequest"), token=looker).status_code == 200
    request = reader.wait_for_event("toolRequest", 2)
    assert talk.post_answer(request, token=looker).status_code == 403
    assert talk.post_answer(request, token=cloud.sign_token(capabilities=["ai.audit.read"])).status_code == 403
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_an_answer_that_comes_after_the_end_is_a_404(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    talk.cancel_turn()
    reader.wait_for_end()
    assert talk.post_answer(request).status_code == 404
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_repeating_an_answer_of_a_finished_turn_changes_nothing(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    talk.answer_request(request)
    reader.wait_for_end()
    assert talk.post_answer(request).status_code == 200
    assert talk.post_answer(request, {"ok": False}).status_code == 409
    assert len(talk.model_requests()) == 2
    turn_checks.check_turn(talk, reader)


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
def test_whatever_an_editor_answers_becomes_something_the_model_can_read(
    talk: ConversationDriver, result: dict[str, Any], told: str | None
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    answer = talk.post_answer(request, result)
    assert answer.status_code == 200, answer.text
    reader.wait_for_end()
    text = result_text(talk.tool_results()[0])
    assert text if told is None else told in text
    assert reader.event_types[-1] == "done"


@pytest.mark.parametrize("result", [{"nodeIds": ["n1"]}, {}, {"ok": "yes"}, {"ok": True, "images": ["iVBORw0KGgo"]}])
def test_what_is_no_answer_is_refused_and_a_better_one_is_waited_for(
    talk: ConversationDriver, result: dict[str, Any]
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    refused = talk.post_answer(request, result)
    assert refused.status_code == 400
    assert "'result." in refused.json()["error"]
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_images_of_an_answer_reach_the_model(talk: ConversationDriver) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    reader = talk.start_turn(tool_call_step(READ_CALL), text_step("I see."))
    image = {"mimeType": "image/png", "data": pixel}
    talk.answer_request(reader.wait_for_event("toolRequest"), OK_RESULT | {"images": [image]})
    reader.wait_for_end()
    (block,) = [part for part in talk.tool_results()[0]["content"] if part["type"] == "image"]
    assert block["source"]["data"] == pixel
    turn_checks.check_turn(talk, reader)
