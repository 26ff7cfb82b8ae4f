"""Stop is a verb of its own: it ends the turn for every reader, hangs up on the provider, and can be said again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, now, says, slowly
from tests.e2e.talk import DELETE, DOCUMENTS, INSERT, Talk, snapshot_of

LONG = " ".join(f"word{number}" for number in range(100))
SOON = 1.0


def cancelled(talk: Talk, token: str | None = None) -> float:
    """Cancel, and the moment when the answer was there."""
    answer = talk.cancel(token)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"bridgeId": talk.bridge, "status": "cancelled"}
    return now()


def test_cancelled_in_mid_text_the_provider_is_hung_up_on_within_a_second(talk: Talk) -> None:
    reader = talk.start(slowly(LONG, seconds=20))
    reader.wait_for_text(20)
    answered = cancelled(talk)
    assert talk.model.closed(talk.script) - answered <= SOON
    reader.finish()
    view = checks.sound(talk, reader, ends="cancelled")
    assert LONG.startswith(view.text)
    assert view.text


def test_cancelled_before_the_first_byte_the_provider_is_hung_up_on_too(talk: Talk) -> None:
    reader = talk.start(says("Never.", firstMs=30_000))
    talk.model.asked(talk.script)
    answered = cancelled(talk)
    assert talk.model.closed(talk.script) - answered <= SOON
    reader.finish()
    assert checks.sound(talk, reader, ends="cancelled").text == ""


def test_cancelled_while_paused_the_open_calls_are_closed_and_a_late_answer_is_a_404(talk: Talk) -> None:
    reader = talk.start(calls(INSERT, DELETE, text="Two things."), says("Never."))
    request = reader.wait("toolRequest")
    cancelled(talk)
    reader.finish()
    assert [event["ok"] for event in reader.of_kind("toolResult")] == [False, False]
    assert talk.post_answer(request).status_code == 404
    assert len(talk.requests()) == 1
    checks.sound(talk, reader, ends="cancelled")


def test_cancelled_while_a_server_tool_runs_its_result_is_dropped(talk: Talk, faults: Faults) -> None:
    with faults.gate("s3.GetObject", contains="/turns/") as gate:
        reader = talk.start(calls(DOCUMENTS), says("Never."), snapshot=snapshot_of("Home"))
        gate.reached()
        cancelled(talk)
    reader.finish()
    assert len(talk.requests()) == 1
    checks.sound(talk, reader, ends="cancelled")


def test_cancelled_between_provider_retries_no_further_request_is_made(talk: Talk) -> None:
    reader = talk.start(says("", status=529, retryAfter=20), says("Never."))
    talk.model.asked(talk.script)
    cancelled(talk)
    reader.finish()
    assert len(talk.requests()) == 1
    checks.sound(talk, reader, ends="cancelled")


def test_cancelling_an_ended_turn_says_how_it_ended(talk: Talk) -> None:
    reader = talk.start(says("Over."))
    reader.finish()
    assert talk.cancel().json() == {"bridgeId": talk.bridge, "status": "done"}
    checks.sound(talk, reader)


def test_cancelling_five_times_at_once_ends_the_turn_once(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Never."))
    reader.wait("toolRequest")
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: talk.cancel(), range(5)))
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "cancelled")] * 5
    reader.finish()
    checks.sound(talk, reader, ends="cancelled")


def test_cancelled_from_a_resumed_reader_every_reader_sees_the_same_end(talk: Talk) -> None:
    first = talk.start(slowly(LONG, seconds=20))
    first.wait_for_text(10)
    first.cut()
    resumed, second = talk.reader(after=first.seq), talk.reader()
    resumed.wait("text")
    cancelled(talk)
    resumed.finish()
    second.finish()
    assert resumed.kinds[-1] == second.kinds[-1] == "cancelled"
    checks.sound(talk, second, first.events + resumed.events, ends="cancelled")


def test_an_answer_and_a_cancel_at_once_leave_one_end(talk: Talk) -> None:
    for _ in range(3):
        reader = talk.start(calls(INSERT), slowly(LONG, seconds=20))
        request = reader.wait("toolRequest")
        with ThreadPoolExecutor(2) as pool:
            answer, stop = pool.submit(talk.post_answer, request), pool.submit(talk.cancel)
        assert answer.result().status_code in (200, 404)
        assert stop.result().json()["status"] == "cancelled"
        reader.finish()
        checks.sound(talk, reader, ends="cancelled")


def test_who_manages_turns_may_cancel_another_users(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(slowly(LONG, seconds=20))
    reader.wait("text")
    cancelled(talk, cloud.sign(sub="meg", capabilities=["ai.turns.manage"]))
    reader.finish()
    checks.sound(talk, reader, ends="cancelled")


@pytest.mark.parametrize(("capabilities", "status"), [(["ai.chat", "ai.tools.write"], 404), (["ai.audit.read"], 403)])
def test_nobody_else_may(talk: Talk, cloud: LocalCloud, stranger: str, capabilities: list[str], status: int) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    assert talk.cancel(cloud.sign(sub="bob", capabilities=capabilities)).status_code == status
    assert talk.cancel(stranger).status_code == 404
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)
