"""Answers to tool requests: repeated, in a crowd, too early, too late, and from people they are not asked of."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.model import calls, says
from tests.e2e.talk import DELETE, INSERT, OK, READ, Talk, said

MOST = ["ai.chat", "ai.tools.write", "site.read", "site.structure.edit"]


def at_once(times: int, act: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(act, range(times)))


def test_the_same_answer_five_times_at_once_is_taken_once_and_fine_each_time(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    answers = at_once(5, lambda _: talk.post_answer(request))
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"ok": True})] * 5
    reader.finish()
    assert len(talk.results()) == 1
    assert len(talk.requests()) == 2
    checks.sound(talk, reader)


def test_of_five_different_answers_at_once_one_counts_and_four_are_told_so(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    answers = at_once(5, lambda number: talk.post_answer(request, {"ok": True, "data": {"number": number}}))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused = [answer for answer in answers if answer.status_code == 409]
    assert all(answer.headers["retry-after"] for answer in refused)
    assert all(answer.json().keys() == {"error"} for answer in refused)
    reader.finish()
    (winner,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert said(talk.results()[0]) == f'{{"number":{winner}}}'
    checks.sound(talk, reader)


def test_an_answer_belongs_to_its_own_request_however_late_it_is_repeated(talk: Talk) -> None:
    reader = talk.start(calls(INSERT, DELETE), says("Done."))
    first = reader.wait("toolRequest")
    talk.answer(first)
    second = reader.wait("toolRequest", 2)
    assert talk.post_answer(first).status_code == 200
    assert talk.post_answer(first, {"ok": False, "error": "no"}).status_code == 409
    assert not reader.of_kind("toolResult")[1:]
    assert [asked["requestId"] for asked in talk.client.bridge(talk.bridge)["pending"]] == [second["requestId"]]
    talk.answer(second)
    reader.finish()
    checks.sound(talk, reader)


def test_a_request_that_was_not_made_yet_cannot_be_answered(talk: Talk) -> None:
    """Its id holds a part that nobody knows before it is asked."""
    reader = talk.start(calls(INSERT, DELETE), says("Done."))
    first = reader.wait("toolRequest")
    guessed = first["requestId"].replace("1.0.", "1.1.")
    assert talk.post_answer(guessed).status_code == 404
    talk.answer(first)
    talk.answer(reader.wait("toolRequest", 2))
    reader.finish()
    checks.sound(talk, reader)


@pytest.mark.parametrize(
    "unknown", ["1.0.nope", "2.0.nope", "7", "x", "-1.0.a", "999999.0.a", "1.0/../2", "\u0000", "🦀"]
)
def test_an_unknown_request_is_a_404(talk: Talk, unknown: str) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    answer = talk.post_answer(unknown)
    assert answer.status_code == 404
    assert answer.json().keys() == {"error"}
    assert talk.post_answer(request, bridge="no-such-bridge").status_code == 404
    talk.answer(request)
    reader.finish()


def test_another_users_answer_is_refused_as_if_there_were_no_such_turn(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    assert talk.post_answer(request, token=cloud.sign(sub="bob", capabilities=MOST)).status_code == 404
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_who_manages_turns_may_answer_for_another_user(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    manager = cloud.sign(sub="meg", capabilities=[*MOST, "ai.turns.manage"])
    assert talk.post_answer(request, token=manager).status_code == 200
    reader.finish()
    checks.sound(talk, reader)


def test_another_tenant_cannot_answer_even_with_every_capability(talk: Talk, stranger: str) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    assert talk.post_answer(request, token=stranger).status_code == 404
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_a_change_needs_the_right_to_write_and_a_look_needs_only_the_right_to_chat(
    talk: Talk, cloud: LocalCloud
) -> None:
    reader = talk.start(calls(READ, INSERT), says("Done."))
    looker = cloud.sign(capabilities=["ai.chat"])
    assert talk.post_answer(reader.wait("toolRequest"), token=looker).status_code == 200
    request = reader.wait("toolRequest", 2)
    assert talk.post_answer(request, token=looker).status_code == 403
    assert talk.post_answer(request, token=cloud.sign(capabilities=["ai.audit.read"])).status_code == 403
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_an_answer_that_comes_after_the_end_is_a_404(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Never."))
    request = reader.wait("toolRequest")
    talk.cancel()
    reader.finish()
    assert talk.post_answer(request).status_code == 404
    checks.sound(talk, reader, ends="cancelled")


def test_repeating_an_answer_of_a_finished_turn_changes_nothing(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    talk.answer(request)
    reader.finish()
    assert talk.post_answer(request).status_code == 200
    assert talk.post_answer(request, {"ok": False}).status_code == 409
    assert len(talk.requests()) == 2
    checks.sound(talk, reader)


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
    talk: Talk, result: dict[str, Any], told: str | None
) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    answer = talk.post_answer(request, result)
    assert answer.status_code == 200, answer.text
    reader.finish()
    text = said(talk.results()[0])
    assert text if told is None else told in text
    assert reader.kinds[-1] == "done"


@pytest.mark.parametrize("result", [{"nodeIds": ["n1"]}, {}, {"ok": "yes"}, {"ok": True, "images": ["iVBORw0KGgo"]}])
def test_what_is_no_answer_is_refused_and_a_better_one_is_waited_for(talk: Talk, result: dict[str, Any]) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    refused = talk.post_answer(request, result)
    assert refused.status_code == 400
    assert "'result." in refused.json()["error"]
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_images_of_an_answer_reach_the_model(talk: Talk) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    reader = talk.start(calls(READ), says("I see."))
    image = {"mimeType": "image/png", "data": pixel}
    talk.answer(reader.wait("toolRequest"), OK | {"images": [image]})
    reader.finish()
    (block,) = [part for part in talk.results()[0]["content"] if part["type"] == "image"]
    assert block["source"]["data"] == pixel
    checks.sound(talk, reader)
