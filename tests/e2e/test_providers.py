"""The provider's bad days: it refuses, is busy, dies, stalls, and sends its bytes in the worst pieces."""

import time
from typing import Any

from tests.e2e import canaries, checks
from tests.e2e.model import Step, calls, says, slowly
from tests.e2e.talk import INSERT, Talk, said

LONG = " ".join(f"word{number}" for number in range(30))
BUSY: dict[str, Any] = {"status": 529, "retryAfter": 0.1}


def end(talk: Talk, *steps: Step, ends: str = "error") -> dict[str, Any]:
    """Run a turn with these answers to its end, everything sound; its last event."""
    reader = talk.start(*steps)
    reader.finish()
    asked = len(talk.requests())
    checks.sound(talk, reader, ends=ends)
    return reader.events[-1] | {"asked": asked, "kinds": reader.kinds}


def test_a_refused_key_ends_the_turn_at_once_and_says_where_to_mend_it(talk: Talk) -> None:
    last = end(talk, says("", status=401))
    assert last["asked"] == 1
    assert last["code"] == "provider_auth"
    assert last["retryable"] is False
    assert "API key" in last["message"]


def test_a_key_that_the_provider_repeats_in_its_error_is_not_told_on(talk: Talk) -> None:
    error = {"type": "invalid_request_error", "message": f"The key {canaries.KEY} is not allowed to do this."}
    last = end(talk, says("", status=400, error=error))
    assert last["code"] == "provider_request"
    assert "is not allowed to do this" in last["message"]
    assert canaries.KEY not in last["message"]


def test_a_rate_limit_is_waited_out_as_long_as_the_provider_says(talk: Talk) -> None:
    reader = talk.start(says("", status=429, retryAfter=1), says("Now."))
    reader.finish()
    first, second = talk.requests()
    assert second["arrivedNs"] - first["arrivedNs"] >= 1e9
    assert checks.sound(talk, reader).text == "Now."


def test_a_rate_limit_that_lasts_too_long_ends_the_turn_instead(talk: Talk) -> None:
    began = time.monotonic()
    last = end(talk, says("", status=429, retryAfter=3600), says("", status=429, retryAfter=3600))
    assert time.monotonic() - began < 20
    assert last["code"] == "provider_quota"
    assert last["retryable"] is True


def test_an_overloaded_provider_is_asked_again(talk: Talk) -> None:
    reader = talk.start(says("", **BUSY), says("", **BUSY), says("At last."))
    reader.finish()
    assert "roundRetracted" not in reader.kinds
    assert len(talk.requests()) == 3
    assert checks.sound(talk, reader).text == "At last."


def test_a_provider_that_stays_overloaded_ends_the_turn(talk: Talk) -> None:
    last = end(talk, *[says("", **BUSY)] * 3)
    assert last["code"] == "provider_overloaded"
    assert last["retryable"] is True
    assert last["asked"] == 3


def test_a_stream_that_breaks_is_retracted_and_asked_for_anew(talk: Talk) -> None:
    reader = talk.start(slowly(LONG, seconds=0.5, after=60, cut=True), says("Whole."))
    reader.finish()
    assert reader.kinds.count("roundRetracted") == 1
    assert checks.sound(talk, reader).text == "Whole."


def test_a_stream_that_breaks_again_ends_the_turn_and_keeps_what_was_said(talk: Talk) -> None:
    broken = slowly(LONG, seconds=0.3, after=60, cut=True)
    reader = talk.start(broken, broken)
    reader.finish()
    assert reader.events[-1]["retryable"] is True
    assert checks.sound(talk, reader, ends="error").text == LONG[:60]


def test_a_stall_is_a_failure_and_the_round_is_asked_for_anew(talk: Talk) -> None:
    reader = talk.start(slowly(LONG, seconds=0.3, after=60, stall=30), says("Lively."))
    reader.finish()
    assert checks.sound(talk, reader).text == "Lively."
    talk.model.closed(talk.script, number=0)


def test_an_error_inside_the_stream_is_no_success(talk: Talk) -> None:
    failing = slowly(LONG, seconds=0.3, after=60, error={"type": "overloaded_error", "message": "Overloaded"})
    last = end(talk, failing, failing)
    assert last["code"] == "provider_overloaded"
    assert last["kinds"].count("roundRetracted") == 1


def test_half_a_character_per_chunk_is_whole_in_the_end(talk: Talk) -> None:
    text, html = "那个你好🦀 naïve ‘quotes’", "<p>杭州 🦀</p>"
    insert = ("insertHtml", {"parentId": "root", "html": html})
    reader = talk.start(calls(insert, text=text, singleBytes=True), says("Gut. 🥨", singleBytes=True))
    request = reader.wait("toolRequest")
    assert request["input"]["html"] == html
    talk.answer(request, {"ok": True, "data": {"said": "好"}})
    reader.finish()
    view = checks.sound(talk, reader)
    assert [a_round.text for a_round in view.rounds] == [text, "Gut. 🥨"]
    assert said(talk.results()[0]) == '{"said":"好"}'


def test_arguments_cut_off_at_the_token_limit_run_nothing_and_the_model_is_told(talk: Talk) -> None:
    broken = {"name": "insertHtml", "input": {}, "raw": '{"parentId": "root", "ht'}
    whole = {"name": "deleteNode", "input": {"nodeId": "n1"}}
    step = {"text": "I try.", "toolCalls": [whole, broken], "stop": "max_tokens"}
    reader = talk.start(step, says("In smaller pieces then."))
    reader.finish()
    assert "toolRequest" not in reader.kinds
    assert [event["ok"] for event in reader.of_kind("toolResult")] == [False, False]
    assert all("cut off" in said(block) for block in talk.results())
    checks.sound(talk, reader)


def test_a_refusal_ends_the_turn_with_an_error_that_says_why(talk: Talk) -> None:
    last = end(talk, says("", stop="refusal", refusal="It asks for an exploit."))
    assert last["code"] == "refused"
    assert last["message"] == "The model declined to answer this: It asks for an exploit."
    assert last["asked"] == 1


def test_a_provider_that_pauses_itself_is_asked_to_go_on(talk: Talk) -> None:
    reader = talk.start(says("First half,", stop="pause_turn"), says(" second half."))
    reader.finish()
    assert [a_round.text for a_round in checks.sound(talk, reader).rounds] == ["First half,", " second half."]


def test_an_answer_of_nothing_ends_the_turn_and_the_thread_lives_on(talk: Talk) -> None:
    assert end(talk, says(""), ends="done")["asked"] == 1


def test_a_client_that_cannot_retract_never_sees_text_twice(editor: Talk) -> None:
    """Instatic's browsers know no retraction: once text is shown, a broken stream ends their turn."""
    reader = editor.start(slowly(LONG, seconds=0.3, after=60, cut=True), says("Never."))
    reader.finish()
    assert "roundRetracted" not in reader.kinds
    assert len(editor.requests()) == 1
    assert checks.sound(editor, reader, ends="error").text == LONG[:60]


def test_a_client_that_cannot_retract_is_retried_as_long_as_nothing_was_shown(editor: Talk) -> None:
    reader = editor.start(says("", **BUSY), calls(INSERT), says("Fine."))
    editor.answer(reader.wait("toolRequest"))
    reader.finish()
    assert checks.sound(editor, reader).text == "Fine."
