"""Test failures of the provider: refusals, overload, lost connections, stalls, and split bytes."""

from typing import Any

from tests.e2e import canaries, turn_checks
from tests.e2e.chat_session import INSERT_CALL, ChatSession, result_text
from tests.e2e.demo_model_client import Step, slow_text_step, text_step, tool_call_step

LONG = " ".join(f"word{number}" for number in range(30))
BUSY: dict[str, Any] = {"status": 529, "retryAfter": 0.1}


def end(session: ChatSession, *steps: Step, ends: str = "error") -> dict[str, Any]:
    """Run a turn with these answers, check it, and return its last event."""
    reader = session.start_turn(*steps)
    reader.wait_for_end()
    asked = len(session.model_requests())
    turn_checks.check_turn(session, reader, ends=ends)
    return reader.events[-1] | {"asked": asked, "kinds": reader.event_types}


def test_a_refused_key_ends_the_turn_with_a_hint_where_to_change_it(session: ChatSession) -> None:
    last = end(session, text_step("", status=401))
    assert last["asked"] == 1
    assert last["code"] == "provider_auth"
    assert last["retryable"] is False
    assert "API key" in last["message"]


def test_a_key_in_a_providers_error_is_redacted(session: ChatSession) -> None:
    error = {"type": "invalid_request_error", "message": f"The key {canaries.KEY} is not allowed to do this."}
    last = end(session, text_step("", status=400, error=error))
    assert last["code"] == "provider_request"
    assert "is not allowed to do this" in last["message"]
    assert canaries.KEY not in last["message"]


def test_spent_credit_is_told_and_not_asked_for_again_and_the_next_prompt_is_answered(session: ChatSession) -> None:
    words = "Your credit balance is too low to access the API."
    last = end(session, text_step("", status=400, error={"type": "invalid_request_error", "message": words}))
    assert last["asked"] == 1
    assert last["code"] == "provider_quota"
    assert last["retryable"] is False
    assert "has no credit left. Check your account balance." in last["message"]
    reader = session.start_turn(text_step("Paid."))
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Paid."


def test_a_rate_limit_is_waited_for_as_long_as_retry_after_says(session: ChatSession) -> None:
    reader = session.start_turn(text_step("", status=429, retryAfter=1), text_step("Now."))
    reader.wait_for_end()
    first, second = session.model_requests()
    assert second["arrivedNs"] - first["arrivedNs"] >= 1e9
    assert turn_checks.check_turn(session, reader).text == "Now."


def test_a_rate_limit_that_lasts_too_long_ends_the_turn(session: ChatSession) -> None:
    last = end(session, text_step("", status=429, retryAfter=3600), text_step("", status=429, retryAfter=3600))
    assert last["asked"] == 1
    assert last["code"] == "provider_quota"
    assert last["retryable"] is True


def test_an_overloaded_provider_is_asked_again(session: ChatSession) -> None:
    reader = session.start_turn(text_step("", **BUSY), text_step("", **BUSY), text_step("At last."))
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types
    assert len(session.model_requests()) == 3
    assert turn_checks.check_turn(session, reader).text == "At last."


def test_a_provider_that_stays_overloaded_ends_the_turn(session: ChatSession) -> None:
    last = end(session, *[text_step("", **BUSY)] * 3)
    assert last["code"] == "provider_overloaded"
    assert last["retryable"] is True
    assert last["asked"] == 3


def test_a_broken_stream_is_retracted_and_requested_again(session: ChatSession) -> None:
    reader = session.start_turn(slow_text_step(LONG, seconds=0.5, after=60, cut=True), text_step("Whole."))
    reader.wait_for_end()
    assert reader.event_types.count("roundRetracted") == 1
    assert turn_checks.check_turn(session, reader).text == "Whole."


def test_a_stream_that_breaks_again_ends_the_turn_and_keeps_its_text(session: ChatSession) -> None:
    broken = slow_text_step(LONG, seconds=0.3, after=60, cut=True)
    reader = session.start_turn(broken, broken)
    reader.wait_for_end()
    assert reader.events[-1]["retryable"] is True
    assert turn_checks.check_turn(session, reader, ends="error").text == LONG[:60]


def test_a_stall_is_a_failure_and_the_request_is_repeated(session: ChatSession) -> None:
    reader = session.start_turn(slow_text_step(LONG, seconds=0.3, after=60, stall=3600), text_step("Lively."))
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Lively."
    session.model.wait_for_close(session.script, number=0)


def test_an_error_event_in_the_stream_fails_the_request(session: ChatSession) -> None:
    failing = slow_text_step(LONG, seconds=0.3, after=60, error={"type": "overloaded_error", "message": "Overloaded"})
    last = end(session, failing, failing)
    assert last["code"] == "provider_overloaded"
    assert last["kinds"].count("roundRetracted") == 1


def test_characters_split_between_chunks_are_decoded(session: ChatSession) -> None:
    text, html = "那个你好🦀 naïve ‘quotes’", "<p>杭州 🦀</p>"
    insert = ("insertHtml", {"parentId": "root", "html": html})
    reader = session.start_turn(
        tool_call_step(insert, text=text, singleBytes=True), text_step("Gut. 🥨", singleBytes=True)
    )
    request = reader.wait_for_event("toolRequest")
    assert request["input"]["html"] == html
    session.answer_request(request, {"ok": True, "data": {"said": "好"}})
    reader.wait_for_end()
    view = turn_checks.check_turn(session, reader)
    assert [a_round.text for a_round in view.rounds] == [text, "Gut. 🥨"]
    assert result_text(session.tool_results()[0]) == '{"said":"好"}'


def test_a_call_truncated_at_the_token_limit_is_not_run_and_the_model_learns_why(session: ChatSession) -> None:
    broken = {"name": "insertHtml", "input": {}, "raw": '{"parentId": "root", "ht'}
    whole = {"name": "deleteNode", "input": {"nodeId": "n1"}}
    step = {"text": "I try.", "toolCalls": [whole, broken], "stop": "max_tokens"}
    reader = session.start_turn(step, text_step("In smaller pieces then."))
    reader.wait_for_end()
    assert "toolRequest" not in reader.event_types
    assert [event["ok"] for event in reader.events_of_type("toolResult")] == [False, False]
    assert all("cut off" in result_text(block) for block in session.tool_results())
    turn_checks.check_turn(session, reader)


def test_a_refusal_ends_the_turn_with_its_explanation(session: ChatSession) -> None:
    last = end(session, text_step("", stop="refusal", refusal="It asks for an exploit."))
    assert last["code"] == "refused"
    assert last["message"] == "The model declined to answer this: It asks for an exploit."
    assert last["asked"] == 1


def test_a_provider_that_pauses_is_asked_to_continue(session: ChatSession) -> None:
    reader = session.start_turn(text_step("First half,", stop="pause_turn"), text_step(" second half."))
    reader.wait_for_end()
    assert [a_round.text for a_round in turn_checks.check_turn(session, reader).rounds] == [
        "First half,",
        " second half.",
    ]


def test_an_empty_answer_is_asked_for_again_and_then_ends_the_turn_and_the_conversation_continues(
    session: ChatSession,
) -> None:
    last = end(session, *[text_step("")] * 3)
    assert (last["code"], last["retryable"], last["asked"]) == ("provider_empty", True, 3)


def test_a_conversation_continues_after_thinking_alone(session: ChatSession) -> None:
    """A message that ends with thinking would be refused in every later prompt."""
    for stop in ("max_tokens", "refusal"):
        end(session, {"thinking": "Hm.", "stop": stop}, ends="done" if stop == "max_tokens" else "error")


def test_without_retraction_no_text_is_streamed_twice(editor: ChatSession) -> None:
    """Instatic's browsers do not know retraction. A stream that breaks after text ends their turn."""
    reader = editor.start_turn(slow_text_step(LONG, seconds=0.3, after=60, cut=True), text_step("Never."))
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types
    assert len(editor.model_requests()) == 1
    assert turn_checks.check_turn(editor, reader, ends="error").text == LONG[:60]


def test_without_retraction_a_request_is_repeated_only_before_any_text(editor: ChatSession) -> None:
    reader = editor.start_turn(text_step("", **BUSY), tool_call_step(INSERT_CALL), text_step("Fine."))
    editor.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert turn_checks.check_turn(editor, reader).text == "Fine."
