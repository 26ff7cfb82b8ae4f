"""The provider's bad days: it refuses, is busy, dies, stalls, and sends its bytes in the worst pieces."""

from typing import Any

from tests.e2e import canaries, turn_checks
from tests.e2e.conversation_driver import INSERT_CALL, ConversationDriver, result_text
from tests.e2e.demo_model_client import Step, slow_text_step, text_step, tool_call_step

LONG = " ".join(f"word{number}" for number in range(30))
BUSY: dict[str, Any] = {"status": 529, "retryAfter": 0.1}


def end(talk: ConversationDriver, *steps: Step, ends: str = "error") -> dict[str, Any]:
    """Run a turn with these answers to its end, everything sound; its last event."""
    reader = talk.start_turn(*steps)
    reader.wait_for_end()
    asked = len(talk.model_requests())
    turn_checks.check_turn(talk, reader, ends=ends)
    return reader.events[-1] | {"asked": asked, "kinds": reader.event_types}


def test_a_refused_key_ends_the_turn_at_once_and_says_where_to_mend_it(talk: ConversationDriver) -> None:
    last = end(talk, text_step("", status=401))
    assert last["asked"] == 1
    assert last["code"] == "provider_auth"
    assert last["retryable"] is False
    assert "API key" in last["message"]


def test_a_key_that_the_provider_repeats_in_its_error_is_not_told_on(talk: ConversationDriver) -> None:
    error = {"type": "invalid_request_error", "message": f"The key {canaries.KEY} is not allowed to do this."}
    last = end(talk, text_step("", status=400, error=error))
    assert last["code"] == "provider_request"
    assert "is not allowed to do this" in last["message"]
    assert canaries.KEY not in last["message"]


def test_a_rate_limit_is_waited_out_as_long_as_the_provider_says(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("", status=429, retryAfter=1), text_step("Now."))
    reader.wait_for_end()
    first, second = talk.model_requests()
    assert second["arrivedNs"] - first["arrivedNs"] >= 1e9
    assert turn_checks.check_turn(talk, reader).text == "Now."


def test_a_rate_limit_that_lasts_too_long_ends_the_turn_instead(talk: ConversationDriver) -> None:
    last = end(talk, text_step("", status=429, retryAfter=3600), text_step("", status=429, retryAfter=3600))
    assert last["asked"] == 1
    assert last["code"] == "provider_quota"
    assert last["retryable"] is True


def test_an_overloaded_provider_is_asked_again(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("", **BUSY), text_step("", **BUSY), text_step("At last."))
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types
    assert len(talk.model_requests()) == 3
    assert turn_checks.check_turn(talk, reader).text == "At last."


def test_a_provider_that_stays_overloaded_ends_the_turn(talk: ConversationDriver) -> None:
    last = end(talk, *[text_step("", **BUSY)] * 3)
    assert last["code"] == "provider_overloaded"
    assert last["retryable"] is True
    assert last["asked"] == 3


def test_a_stream_that_breaks_is_retracted_and_asked_for_anew(talk: ConversationDriver) -> None:
    reader = talk.start_turn(slow_text_step(LONG, seconds=0.5, after=60, cut=True), text_step("Whole."))
    reader.wait_for_end()
    assert reader.event_types.count("roundRetracted") == 1
    assert turn_checks.check_turn(talk, reader).text == "Whole."


def test_a_stream_that_breaks_again_ends_the_turn_and_keeps_what_was_said(talk: ConversationDriver) -> None:
    broken = slow_text_step(LONG, seconds=0.3, after=60, cut=True)
    reader = talk.start_turn(broken, broken)
    reader.wait_for_end()
    assert reader.events[-1]["retryable"] is True
    assert turn_checks.check_turn(talk, reader, ends="error").text == LONG[:60]


def test_a_stall_is_a_failure_and_the_round_is_asked_for_anew(talk: ConversationDriver) -> None:
    reader = talk.start_turn(slow_text_step(LONG, seconds=0.3, after=60, stall=3600), text_step("Lively."))
    reader.wait_for_end()
    assert turn_checks.check_turn(talk, reader).text == "Lively."
    talk.model.wait_for_close(talk.script, number=0)


def test_an_error_inside_the_stream_is_no_success(talk: ConversationDriver) -> None:
    failing = slow_text_step(LONG, seconds=0.3, after=60, error={"type": "overloaded_error", "message": "Overloaded"})
    last = end(talk, failing, failing)
    assert last["code"] == "provider_overloaded"
    assert last["kinds"].count("roundRetracted") == 1


def test_half_a_character_per_chunk_is_whole_in_the_end(talk: ConversationDriver) -> None:
    text, html = "那个你好🦀 naïve ‘quotes’", "<p>杭州 🦀</p>"
    insert = ("insertHtml", {"parentId": "root", "html": html})
    reader = talk.start_turn(
        tool_call_step(insert, text=text, singleBytes=True), text_step("Gut. 🥨", singleBytes=True)
    )
    request = reader.wait_for_event("toolRequest")
    assert request["input"]["html"] == html
    talk.answer_request(request, {"ok": True, "data": {"said": "好"}})
    reader.wait_for_end()
    view = turn_checks.check_turn(talk, reader)
    assert [a_round.text for a_round in view.rounds] == [text, "Gut. 🥨"]
    assert result_text(talk.tool_results()[0]) == '{"said":"好"}'


def test_arguments_cut_off_at_the_token_limit_run_nothing_and_the_model_is_told(talk: ConversationDriver) -> None:
    broken = {"name": "insertHtml", "input": {}, "raw": '{"parentId": "root", "ht'}
    whole = {"name": "deleteNode", "input": {"nodeId": "n1"}}
    step = {"text": "I try.", "toolCalls": [whole, broken], "stop": "max_tokens"}
    reader = talk.start_turn(step, text_step("In smaller pieces then."))
    reader.wait_for_end()
    assert "toolRequest" not in reader.event_types
    assert [event["ok"] for event in reader.events_of_type("toolResult")] == [False, False]
    assert all("cut off" in result_text(block) for block in talk.tool_results())
    turn_checks.check_turn(talk, reader)


def test_a_refusal_ends_the_turn_with_an_error_that_says_why(talk: ConversationDriver) -> None:
    last = end(talk, text_step("", stop="refusal", refusal="It asks for an exploit."))
    assert last["code"] == "refused"
    assert last["message"] == "The model declined to answer this: It asks for an exploit."
    assert last["asked"] == 1


def test_a_provider_that_pauses_itself_is_asked_to_go_on(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("First half,", stop="pause_turn"), text_step(" second half."))
    reader.wait_for_end()
    assert [a_round.text for a_round in turn_checks.check_turn(talk, reader).rounds] == ["First half,", " second half."]


def test_an_answer_of_nothing_ends_the_turn_and_the_thread_lives_on(talk: ConversationDriver) -> None:
    assert end(talk, text_step(""), ends="done")["asked"] == 1


def test_a_client_that_cannot_retract_never_sees_text_twice(editor: ConversationDriver) -> None:
    """Instatic's browsers know no retraction: once text is shown, a broken stream ends their turn."""
    reader = editor.start_turn(slow_text_step(LONG, seconds=0.3, after=60, cut=True), text_step("Never."))
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types
    assert len(editor.model_requests()) == 1
    assert turn_checks.check_turn(editor, reader, ends="error").text == LONG[:60]


def test_a_client_that_cannot_retract_is_retried_as_long_as_nothing_was_shown(editor: ConversationDriver) -> None:
    reader = editor.start_turn(text_step("", **BUSY), tool_call_step(INSERT_CALL), text_step("Fine."))
    editor.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert turn_checks.check_turn(editor, reader).text == "Fine."
