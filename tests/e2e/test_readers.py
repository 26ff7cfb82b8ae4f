"""Following a turn: who reconnects sees the whole, a second tab sees the same, a closed tab stops nothing."""

import pytest

from fermata_client import fold_all
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.model import Step, calls, says, slowly
from tests.e2e.reader import AI, Reader
from tests.e2e.talk import DELETE, DOCUMENTS, INSERT, READ, Talk, http
from tests.local.lab import until

QUARTERS = (1, 2, 3)


def steps() -> list[Step]:
    """Slow text, three calls, one of which fails, and slow text again."""
    look = calls(INSERT, DOCUMENTS, DELETE, text="Let me first have a look at what there is.", chunkMs=30)
    return [look, slowly("Both of them are done, and here is what I did.", seconds=0.3)]


def serve(talk: Talk, reader: Reader) -> None:
    """Answer both requests, the second one with a failure."""
    talk.answer(reader.wait("toolRequest"))
    talk.answer(reader.wait("toolRequest", 2), {"ok": False, "error": "There is no such node."})


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_cut_at_any_quarter_and_reconnected_sees_the_whole_and_no_byte_twice(talk: Talk, quarter: int) -> None:
    helper = talk.start(*steps())
    serve(talk, helper)
    helper.finish()
    limit = helper.bytes * quarter // 4
    cut = talk.reader(limit=limit)
    cut.finish()
    assert cut.bytes == limit
    assert cut.kinds[-1:] != ["done"]
    rest = talk.reader(after=cut.seq)
    rest.finish()
    seen = cut.events + rest.events
    checks.numbered(seen)
    assert seen == helper.events
    assert rest.bytes <= helper.bytes - limit + 400, "no more than the rest and the line that was cut"
    checks.sound(talk, helper, seen)


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_reader_cut_while_the_turn_runs_goes_on_where_it_was(talk: Talk, quarter: int) -> None:
    helper = talk.start(*steps())
    cut = talk.reader(limit=450 * quarter)
    serve(talk, helper)
    cut.finish()
    rest = talk.reader(after=cut.seq)
    rest.finish()
    seen = cut.events + rest.events
    checks.numbered(seen)
    checks.sound(talk, helper, seen)


def test_the_response_to_the_prompt_is_a_reader_like_any_other(talk: Talk) -> None:
    prompt = talk.prompt(slowly("one two three four five six seven eight", seconds=1))
    body = {"conversationId": talk.conversation, "prompt": prompt}
    tab = Reader(talk.cloud.url, talk.token, f"{AI}/chat/site", body=body)
    talk.bridge = tab.wait("bridgeReady")["bridgeId"]
    assert tab.headers["content-type"] == "application/x-ndjson"
    tab.wait_for_text(8)
    tab.cut()
    rest = talk.reader(after=tab.seq)
    rest.finish()
    checks.sound(talk, tab.events + rest.events)


def test_a_second_tab_sees_the_same_while_it_happens(talk: Talk) -> None:
    first = talk.start(*steps())
    second = talk.reader()
    serve(talk, first)
    assert first.finish() == second.finish()
    checks.sound(talk, first, second)


def test_reading_everything_twice_or_three_times_shows_it_once(talk: Talk) -> None:
    reader = talk.start(*steps())
    serve(talk, reader)
    whole = reader.finish()
    doubled = [event for event in whole for _ in range(1 + event["seq"] % 3)]
    assert fold_all(whole + whole) == fold_all(doubled) == checks.sound(talk, reader)


def test_after_the_last_event_there_is_nothing_and_beyond_it_an_error_with_its_number(talk: Talk) -> None:
    reader = talk.start(says("Short."))
    last = reader.finish()[-1]["seq"]
    again = talk.reader(after=last)
    assert again.finish() == []
    assert again.status == 200
    beyond = talk.reader(after=last + 1)
    beyond.finish()
    assert beyond.status == 400
    assert f"{last}" in beyond.refusal["error"]
    checks.sound(talk, reader)


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "", "９", "9999999999"])
def test_a_number_that_is_none_is_refused(talk: Talk, after: str) -> None:
    talk.start(says("Short.")).finish()
    with http(talk.cloud) as bare:
        refused = bare.get(f"/bridges/{talk.bridge}/events", params={"after": after})
    assert refused.status_code == 400
    assert "after" in refused.json()["error"]


def test_closing_the_tab_stops_nothing(talk: Talk) -> None:
    reader = talk.start(slowly("one two three four five six seven eight", seconds=1))
    reader.wait("text")
    reader.cut()
    until(lambda: talk.client.bridge(talk.bridge)["status"] == "done", "the turn ends without a reader")
    (request,) = talk.requests()
    assert request["lastByteNs"]
    assert not request["closedByPeerNs"]
    assert checks.sound(talk).text == "one two three four five six seven eight"


def test_a_silent_stream_gives_a_sign_of_life_that_no_fold_sees(talk: Talk) -> None:
    reader = talk.start(calls(READ), says("Done."))
    request = reader.wait("toolRequest")
    until(lambda: reader.blank >= 2, "two blank lines")
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_only_its_owner_and_who_manages_turns_may_read_a_turn(talk: Talk, cloud: LocalCloud, stranger: str) -> None:
    reader = talk.start(says("Private."))
    reader.finish()
    tokens = {
        cloud.sign(sub="bob", capabilities=["ai.chat"]): 404,
        stranger: 404,
        cloud.sign(capabilities=["ai.audit.read"]): 403,
        cloud.sign(sub="meg", capabilities=["ai.turns.manage"]): 200,
    }
    for token, status in tokens.items():
        other = talk.reader(token=token)
        other.finish()
        assert other.status == status
        with http(cloud, token) as bare:
            assert bare.get(f"/bridges/{talk.bridge}").status_code == status
    checks.sound(talk, reader)
