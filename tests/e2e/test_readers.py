"""Following a turn: who reconnects sees the whole, a second tab sees the same, a closed tab stops nothing."""

from pathlib import Path

import pytest

from fermata_client import fold_events
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import (
    DELETE_CALL,
    DOCUMENTS_CALL,
    INSERT_CALL,
    READ_CALL,
    ConversationDriver,
    open_http,
)
from tests.e2e.demo_model_client import Step, held_text_step, slow_text_step, text_step, tool_call_step
from tests.e2e.stream_reader import API_PREFIX, StreamReader
from tests.waiting import wait_until

QUARTERS = (1, 2, 3)


def steps() -> list[Step]:
    """Slow text, three calls, one of which fails, and slow text again."""
    look = tool_call_step(
        INSERT_CALL, DOCUMENTS_CALL, DELETE_CALL, text="Let me first have a look at what there is.", chunkMs=30
    )
    return [look, slow_text_step("Both of them are done, and here is what I did.", seconds=0.3)]


def serve(talk: ConversationDriver, reader: StreamReader) -> None:
    """Answer both requests, the second one with a failure."""
    talk.answer_request(reader.wait_for_event("toolRequest"))
    talk.answer_request(reader.wait_for_event("toolRequest", 2), {"ok": False, "error": "There is no such node."})


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_cut_at_any_quarter_and_reconnected_sees_the_whole_and_no_byte_twice(
    talk: ConversationDriver, quarter: int
) -> None:
    helper = talk.start_turn(*steps())
    serve(talk, helper)
    helper.wait_for_end()
    limit = helper.bytes * quarter // 4
    cut = talk.open_reader(limit=limit)
    cut.wait_for_end()
    assert cut.bytes == limit
    assert cut.event_types[-1:] != ["done"]
    rest = talk.open_reader(after=cut.last_seq)
    rest.wait_for_end()
    seen = cut.events + rest.events
    turn_checks.check_event_numbers(seen)
    assert seen == helper.events
    assert rest.bytes <= helper.bytes - limit + 400, "no more than the rest and the line that was cut"
    turn_checks.check_turn(talk, helper, seen)


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_cut_while_the_turn_runs_goes_on_where_it_was(talk: ConversationDriver, quarter: int) -> None:
    helper = talk.start_turn(*steps())
    cut = talk.open_reader(limit=450 * quarter)
    serve(talk, helper)
    cut.wait_for_end()
    rest = talk.open_reader(after=cut.last_seq)
    rest.wait_for_end()
    seen = cut.events + rest.events
    turn_checks.check_event_numbers(seen)
    turn_checks.check_turn(talk, helper, seen)


def test_the_response_to_the_prompt_is_a_reader_like_any_other(talk: ConversationDriver) -> None:
    prompt = talk.scripted_prompt(slow_text_step("one two three four five six seven eight", seconds=1))
    body = {"conversationId": talk.conversation, "prompt": prompt}
    tab = StreamReader(talk.cloud.url, talk.token, f"{API_PREFIX}/chat/site", body=body)
    talk.bridge = tab.wait_for_event("bridgeReady")["bridgeId"]
    assert tab.headers["content-type"] == "application/x-ndjson"
    tab.wait_for_text(8)
    tab.drop_connection()
    rest = talk.open_reader(after=tab.last_seq)
    rest.wait_for_end()
    turn_checks.check_turn(talk, tab.events + rest.events)


def test_a_second_tab_sees_the_same_while_it_happens(talk: ConversationDriver) -> None:
    first = talk.start_turn(*steps())
    second = talk.open_reader()
    serve(talk, first)
    assert first.wait_for_end() == second.wait_for_end()
    turn_checks.check_turn(talk, first, second)


def test_reading_everything_twice_or_three_times_shows_it_once(talk: ConversationDriver) -> None:
    reader = talk.start_turn(*steps())
    serve(talk, reader)
    whole = reader.wait_for_end()
    doubled = [event for event in whole for _ in range(1 + event["seq"] % 3)]
    assert fold_events(whole + whole) == fold_events(doubled) == turn_checks.check_turn(talk, reader)


def test_after_the_last_event_there_is_nothing_and_beyond_it_an_error_with_its_number(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("Short."))
    last = reader.wait_for_end()[-1]["seq"]
    again = talk.open_reader(after=last)
    assert again.wait_for_end() == []
    assert again.status == 200
    beyond = talk.open_reader(after=last + 1)
    beyond.wait_for_end()
    assert beyond.status == 400
    assert f"{last}" in beyond.refusal["error"]
    turn_checks.check_turn(talk, reader)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "", "９", "9999999999"])
def test_a_number_that_is_none_is_refused(talk: ConversationDriver, after: str) -> None:
    talk.start_turn(text_step("Short.")).wait_for_end()
    with open_http(talk.cloud) as bare:
        refused = bare.get(f"/bridges/{talk.bridge}/events", params={"after": after})
    assert refused.status_code == 400
    assert "after" in refused.json()["error"]


def test_closing_the_tab_stops_nothing(talk: ConversationDriver, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    reader = talk.start_turn(held_text_step("one two three four five six seven eight", gate))
    reader.wait_for_event("text")
    reader.drop_connection()
    gate.touch()
    wait_until(lambda: talk.client.get_bridge(talk.bridge)["status"] == "done", "the turn ends without a reader")
    (request,) = talk.model_requests()
    assert request["lastByteNs"]
    assert not request["closedByPeerNs"]
    assert turn_checks.check_turn(talk).text == "one two three four five six seven eight"


def test_a_silent_stream_gives_a_sign_of_life_that_no_fold_sees(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(READ_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    wait_until(lambda: reader.blank >= 2, "two blank lines")
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_only_its_owner_and_who_manages_turns_may_read_a_turn(
    talk: ConversationDriver, cloud: LocalCloud, stranger: str
) -> None:
    reader = talk.start_turn(text_step("Private."))
    reader.wait_for_end()
    tokens = {
        cloud.sign_token(sub="bob", capabilities=["ai.chat"]): 404,
        stranger: 404,
        cloud.sign_token(capabilities=["ai.audit.read"]): 403,
        cloud.sign_token(sub="meg", capabilities=["ai.turns.manage"]): 200,
    }
    for token, status in tokens.items():
        other = talk.open_reader(token=token)
        other.wait_for_end()
        assert other.status == status
        with open_http(cloud, token) as bare:
            assert bare.get(f"/bridges/{talk.bridge}").status_code == status
    turn_checks.check_turn(talk, reader)
