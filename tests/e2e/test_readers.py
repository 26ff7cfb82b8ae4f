"""Test readers of a turn: reconnected ones lose nothing, a second one sees the same, none is needed."""

from pathlib import Path

import pytest

from fermata_client import fold_events
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    DOCUMENTS_CALL,
    INSERT_CALL,
    READ_CALL,
    ChatSession,
    open_http,
)
from tests.e2e.demo_model_client import Step, held_text_step, slow_text_step, text_step, tool_call_step
from tests.e2e.stream_reader import API_PREFIX, StreamReader
from tests.waiting import wait_until

QUARTERS = (1, 2, 3)


def steps() -> list[Step]:
    """Make slow text, three calls of which one fails, and slow text again."""
    look = tool_call_step(
        INSERT_CALL, DOCUMENTS_CALL, DELETE_CALL, text="Let me first have a look at what there is.", chunkMs=30
    )
    return [look, slow_text_step("Both of them are done, and here is what I did.", seconds=0.3)]


def serve(session: ChatSession, reader: StreamReader) -> None:
    """Answer both requests, the second one with a failure."""
    session.answer_request(reader.wait_for_event("toolRequest"))
    session.answer_request(reader.wait_for_event("toolRequest", 2), {"ok": False, "error": "There is no such node."})


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_dropped_at_any_quarter_resumes_without_loss_or_repetition(session: ChatSession, quarter: int) -> None:
    helper = session.start_turn(*steps())
    serve(session, helper)
    helper.wait_for_end()
    limit = helper.bytes * quarter // 4
    cut = session.open_reader(limit=limit)
    cut.wait_for_end()
    assert cut.bytes == limit
    assert cut.event_types[-1:] != ["done"]
    rest = session.open_reader(after=cut.last_seq)
    rest.wait_for_end()
    seen = cut.events + rest.events
    turn_checks.check_event_numbers(seen)
    assert seen == helper.events
    assert rest.bytes <= helper.bytes - limit + 400, "no more than the rest and the line that was cut"
    turn_checks.check_turn(session, helper, seen)


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_dropped_during_the_turn_resumes_where_it_was(session: ChatSession, quarter: int) -> None:
    helper = session.start_turn(*steps())
    cut = session.open_reader(limit=450 * quarter)
    serve(session, helper)
    cut.wait_for_end()
    rest = session.open_reader(after=cut.last_seq)
    rest.wait_for_end()
    seen = cut.events + rest.events
    turn_checks.check_event_numbers(seen)
    turn_checks.check_turn(session, helper, seen)


def test_the_response_to_the_prompt_can_be_resumed_like_any_stream(session: ChatSession) -> None:
    prompt = session.scripted_prompt(slow_text_step("one two three four five six seven eight", seconds=1))
    body = {"conversationId": session.conversation, "prompt": prompt}
    tab = StreamReader(session.cloud.url, session.token, f"{API_PREFIX}/chat/site", body=body)
    session.bridge = tab.wait_for_event("bridgeReady")["bridgeId"]
    assert tab.headers["content-type"] == "application/x-ndjson"
    tab.wait_for_text(8)
    tab.drop_connection()
    rest = session.open_reader(after=tab.last_seq)
    rest.wait_for_end()
    turn_checks.check_turn(session, tab.events + rest.events)


def test_a_second_tab_sees_the_same_events(session: ChatSession) -> None:
    first = session.start_turn(*steps())
    second = session.open_reader()
    serve(session, first)
    assert first.wait_for_end() == second.wait_for_end()
    turn_checks.check_turn(session, first, second)


def test_repeated_events_are_folded_once(session: ChatSession) -> None:
    reader = session.start_turn(*steps())
    serve(session, reader)
    whole = reader.wait_for_end()
    doubled = [event for event in whole for _ in range(1 + event["seq"] % 3)]
    assert fold_events(whole + whole) == fold_events(doubled) == turn_checks.check_turn(session, reader)


def test_after_the_last_event_the_stream_is_empty_and_beyond_it_an_error(session: ChatSession) -> None:
    reader = session.start_turn(text_step("Short."))
    last = reader.wait_for_end()[-1]["seq"]
    again = session.open_reader(after=last)
    assert again.wait_for_end() == []
    assert again.status == 200
    beyond = session.open_reader(after=last + 1)
    beyond.wait_for_end()
    assert beyond.status == 400
    assert (beyond.refusal["code"], beyond.refusal["lastSeq"]) == ("logRewound", last)
    turn_checks.check_turn(session, reader)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "", "９", "9999999999"])
def test_an_invalid_event_number_is_refused(session: ChatSession, after: str) -> None:
    session.start_turn(text_step("Short.")).wait_for_end()
    with open_http(session.cloud) as bare:
        refused = bare.get(f"/bridges/{session.bridge}/events", params={"after": after})
    assert refused.status_code == 400
    assert "after" in refused.json()["error"]


def test_a_turn_continues_without_a_reader(session: ChatSession, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    reader = session.start_turn(held_text_step("one two three four five six seven eight", gate))
    reader.wait_for_event("text")
    reader.drop_connection()
    gate.touch()
    wait_until(lambda: session.client.get_bridge(session.bridge)["status"] == "done", "the turn ends without a reader")
    (request,) = session.model_requests()
    assert request["lastByteNs"]
    assert not request["closedByPeerNs"]
    assert turn_checks.check_turn(session).text == "one two three four five six seven eight"


def test_a_silent_stream_sends_heartbeats_that_are_no_events(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(READ_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    wait_until(lambda: reader.blank >= 2, "two blank lines")
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_only_the_owner_and_users_who_manage_turns_may_read_a_turn(
    session: ChatSession, cloud: LocalCloud, stranger: str
) -> None:
    reader = session.start_turn(text_step("Private."))
    reader.wait_for_end()
    tokens = {
        cloud.sign_token(sub="bob", capabilities=["ai.chat"]): 404,
        stranger: 404,
        cloud.sign_token(capabilities=["ai.audit.read"]): 403,
        cloud.sign_token(sub="meg", capabilities=["ai.turns.manage"]): 200,
    }
    for token, status in tokens.items():
        other = session.open_reader(token=token)
        other.wait_for_end()
        assert other.status == status
        with open_http(cloud, token) as bare:
            assert bare.get(f"/bridges/{session.bridge}").status_code == status
    turn_checks.check_turn(session, reader)
