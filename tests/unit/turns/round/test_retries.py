"""Retries: failures before any text are retried in place; later ones retract the text or end the turn."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.domain.blocks import ReasoningBlock, TextBlock
from fermata.domain.events import ErrorEvent, ReasoningEvent, RoundRetractedEvent, WarningEvent
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta, TokenUsage
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, reply_with_text, tool_call_block
from tests.unit.turns.state_machine import StateMachine

OVERLOADED = make_provider_error()


def get_error(stage: Stage) -> ErrorEvent:
    end = stage.terminal_events()[-1]
    assert isinstance(end, ErrorEvent)
    return end


def test_a_failure_before_any_text_is_retried_with_growing_delays(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([OVERLOADED], [OVERLOADED], "Hello.")
    stage.advance_turn()
    first, second = stage.connection.sleeps
    assert 0.75 <= first <= 1
    assert 1.5 <= second <= 2
    repeats = ["requestFailed", "requestStarted"] * 2
    assert stage.event_types() == ["bridgeReady", "roundStarted", *repeats, "text", "context", "usage", "done"]
    invariants.check_invariants(stage)


def test_the_delay_that_a_provider_asks_for_is_kept(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_quota", retry_after=7)], "Hello.")
    stage.advance_turn()
    assert stage.connection.sleeps == [7]


def test_a_delay_that_is_too_long_ends_the_turn(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_quota", retry_after=600)])
    stage.advance_turn()
    assert len(stage.driver.requests) == 1
    assert get_error(stage).code == "provider_quota"
    assert get_error(stage).retryable
    invariants.check_invariants(stage)


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_request_is_sent_three_times_at_most(stage: Stage, dialect: Any) -> None:
    stage.start_turn(dialect=dialect)
    stage.script_replies([OVERLOADED], [OVERLOADED], [OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 3
    assert get_error(stage).code == "provider_overloaded"
    invariants.check_invariants(stage)


def test_a_permanent_failure_is_not_retried(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_auth", retryable=False)])
    stage.advance_turn()
    assert not stage.connection.sleeps
    assert get_error(stage).retryable is False
    invariants.check_invariants(stage)


def test_a_deleted_credential_ends_the_turn_without_a_request(stage: Stage) -> None:
    stage.start_turn()
    stage.resources.tables._client.delete_item(
        TableName=stage.resources.settings.settings_table,
        Key={"pk": {"S": "t#bakery"}, "sk": {"S": f"credential#{stage.credential.id}"}},
    )
    stage.advance_turn()
    assert get_error(stage).code == "provider_auth"
    assert not stage.ledger_rows()
    assert not stage.driver.requests


def test_text_of_a_failed_request_is_retracted_and_streamed_again(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED], "Hello.")
    stage.advance_turn()
    expected_types = [
        "bridgeReady",
        "roundStarted",
        "text",
        "roundRetracted",
        "roundStarted",
        "text",
        "context",
        "usage",
        "done",
    ]
    assert stage.event_types() == expected_types
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_second_failure_after_text_ends_the_turn_and_keeps_the_text(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED], [TextDelta(text="Hell"), OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 2
    assert get_error(stage).code == "provider_overloaded"
    message = stage.load_messages()[-1]
    assert (message.content, message.partial) == ((TextBlock(text="Hell"),), True)
    invariants.check_invariants(stage)


def test_text_is_never_streamed_twice_to_an_instatic_browser(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 1
    assert get_error(stage).code == "provider_overloaded"
    assert stage.streamed_text() == "Hel"
    invariants.check_invariants(stage)


def test_text_not_yet_written_when_the_request_failed_is_kept(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), TextDelta(text="lo."), OVERLOADED])
    stage.advance_turn()
    assert stage.streamed_text() == "Hello."
    assert stage.load_messages()[-1].content == (TextBlock(text="Hello."),)
    invariants.check_invariants(stage)


def test_streamed_reasoning_is_retracted_too(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [ReasoningDelta(text="Hm."), OVERLOADED], [ReasoningDelta(text="Hm!"), *reply_with_text("Hello.")]
    )
    stage.advance_turn()
    events = [event for event in stage.events() if isinstance(event, ReasoningEvent | RoundRetractedEvent)]
    assert events == [ReasoningEvent(text="Hm."), RoundRetractedEvent(round=1), ReasoningEvent(text="Hm!")]
    invariants.check_invariants(stage)


def test_an_instatic_round_may_restart_after_reasoning(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([ReasoningDelta(text="Hm."), OVERLOADED], "Hello.")
    stage.advance_turn()
    assert stage.streamed_text() == "Hello."
    invariants.check_invariants(stage)


def test_a_stream_without_a_final_response_is_a_failure(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel")], "Hello.")
    stage.advance_turn()
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_provider_that_sends_nothing_is_not_asked_forever(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([])
    stage.advance_turn()
    assert get_error(stage).code == "provider_error"
    assert len(stage.driver.requests) == 1
    invariants.check_invariants(stage)


def test_each_round_may_restart_once(stage: Stage) -> None:
    stage.start_turn()
    for number in range(3):
        stage.script_replies(
            [TextDelta(text="Hel"), OVERLOADED],
            reply_with_calls(tool_call_block("list_documents"), text=f"Round {number}."),
        )
    stage.script_replies("Done.")
    stage.advance_turn()
    assert stage.event_types().count("roundRetracted") == 3
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_failed_function_is_run_once_more(stage: Stage, dialect: Any) -> None:
    stage.start_turn(dialect=dialect)
    stage.script_replies([ValueError("a bug")], "Hello.")
    machine = StateMachine(stage)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Finished"]
    invariants.check_invariants(stage)


def test_a_function_that_died_after_instatic_text_ends_the_turn(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    assert StateMachine(stage).run() == "Finished"
    assert get_error(stage).code == "interrupted"
    assert stage.load_messages()[-1].content == (TextBlock(text="Hel"),)
    invariants.check_invariants(stage)


def test_a_throttled_append_fails_the_function_and_its_retry_retracts_the_text(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("Hello."), reply_with_text("Hello."))
    code = "ProvisionedThroughputExceededException"
    stage.faults.fail_call("dynamodb.TransactWriteItems", code, contains="done")
    assert StateMachine(stage).run() == "Finished"
    assert stage.event_types().count("roundRetracted") == 1
    invariants.check_invariants(stage)


def test_a_workflow_error_fails_the_function_and_its_retry_finds_the_work_done(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    machine = StateMachine(stage)
    stage.workflow.next_errors.append(
        ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "SendTaskSuccess")
    )
    assert machine.run() == "Finished"
    assert len(stage.driver.requests) == 1
    invariants.check_invariants(stage)


def test_no_call_of_a_truncated_response_is_run(stage: Stage) -> None:
    stage.start_turn()
    first, second = tool_call_block("deleteNode", nodeId="a"), tool_call_block("list_documents")
    stage.script_replies(reply_with_calls(first, second, stop=FinishReason.MAX_TOKENS), "I will be brief.")
    assert stage.run_workflow() == "finished"
    assert not stage.tool_requests()
    results = [message for message in stage.driver.requests[1].messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == [first.tool_call_id, second.tool_call_id]
    assert all("cut off at the token limit" in str(message.content[0]) for message in results)
    invariants.check_invariants(stage)


def test_a_truncated_text_ends_the_turn_with_a_warning(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("As I was say", stop=FinishReason.MAX_TOKENS))
    assert stage.run_workflow() == "finished"
    (warned,) = [event for event in stage.events() if isinstance(event, WarningEvent)]
    assert "cut off" in warned.message
    assert stage.load_messages()[-1].partial is None
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_a_refusal_ends_the_turn_and_stores_no_empty_message(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(*(tool_call_block("list_documents") for _ in range(4))),
        reply_with_text("", stop=FinishReason.REFUSAL),
    )
    assert stage.run_workflow() == "finished"
    assert get_error(stage).code == "refused"
    assert len(stage.driver.requests) == 2
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", "tool", "tool", "tool", "tool"]
    invariants.check_invariants(stage)
    assert all(message.content for message in stage.driver.requests[-1].messages)


def test_a_refusal_contains_the_providers_reason(stage: Stage) -> None:
    stage.start_turn()
    refused = ModelResponse(
        blocks=(), stop=FinishReason.REFUSAL, tokens=TokenUsage(prompt=1), refusal="this asks for an exploit."
    )
    stage.script_replies([refused])
    stage.run_workflow()
    assert get_error(stage).message == "The model declined to answer this: this asks for an exploit."
    invariants.check_invariants(stage)


def test_a_paused_response_is_continued(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("First half,", stop=FinishReason.PAUSE), "second half.")
    assert stage.run_workflow() == "finished"
    assert [message.role for message in stage.driver.requests[1].messages] == ["user", "assistant"]
    assert stage.streamed_text() == "First half,second half."
    invariants.check_invariants(stage)


def test_a_response_that_pauses_forever_ends_at_the_round_limit(staged: MakeStage) -> None:
    stage = staged(max_rounds=4)
    stage.start_turn()
    stage.script_replies(*(reply_with_text("and", stop=FinishReason.PAUSE) for _ in range(4)))
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests) == 4
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_on_the_last_round_no_tool_may_be_called(staged: MakeStage) -> None:
    stage = staged(max_rounds=3)
    stage.start_turn()
    stage.script_replies(
        *(reply_with_calls(tool_call_block("list_documents"), text=f"{number}") for number in range(3))
    )
    assert stage.run_workflow() == "finished"
    assert [request.call_tools for request in stage.driver.requests] == [True, True, False]
    assert stage.event_types().count("toolCall") == 2
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_an_empty_response_ends_the_turn(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("")
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "context", "usage", "done"]
    assert [message.role for message in stage.load_messages()] == ["user"]
    invariants.check_invariants(stage)


def test_a_response_of_reasoning_only_is_stored(stage: Stage) -> None:
    stage.start_turn()
    thought = ReasoningBlock(provider="anthropic", model="model-1", payload={"type": "thinking", "thinking": "hm"})
    stage.script_replies(
        [
            ReasoningDelta(text="hm"),
            ModelResponse(blocks=(thought,), stop=FinishReason.END, tokens=TokenUsage(prompt=1)),
        ]
    )
    assert stage.run_workflow() == "finished"
    assert stage.load_messages()[-1].content == (thought,)
    stage.start_turn("And now?")
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"


def test_a_round_begins_only_with_enough_time_left(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "Done.")
    invocation = stage.advance_turn(seconds=300)
    assert stage.workflow.outputs[invocation.token]["next"] == "round"
    assert len(stage.driver.requests) == 1
    stage.advance_turn(hint=stage.workflow.outputs[invocation.token]["hint"])
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_rounds_with_browser_calls_are_no_retries(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a")),
        reply_with_calls(tool_call_block("deleteNode", nodeId="b")),
        "Done.",
    )
    machine = StateMachine(stage)
    for _ in range(2):
        assert machine.run() == "RunRound"
        stage.answer_request(OK)
    assert machine.run() == "Finished"
    assert "roundRetracted" not in stage.event_types()
    invariants.check_invariants(stage)


NO_ANSWER = make_provider_error("provider_empty")


def test_a_first_round_without_an_answer_is_asked_again_and_ends_with_an_error(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([NO_ANSWER], [NO_ANSWER], [NO_ANSWER])
    stage.run_workflow()
    assert len(stage.driver.requests) == 3
    assert get_error(stage).code == "provider_empty"
    invariants.check_invariants(stage)


def test_a_model_that_has_worked_and_then_says_nothing_is_done_with_a_warning(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("list_tokens")), [NO_ANSWER], [NO_ANSWER], [NO_ANSWER])
    stage.run_workflow()
    warnings = [event.message for event in stage.events() if isinstance(event, WarningEvent)]
    assert warnings == ["The model ended its work without a word. Ask it what it did, or what is missing."]
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_a_last_round_without_words_is_asked_again_and_ends_with_the_warning_of_the_limit(stage: Stage) -> None:
    stage.start_turn(max_rounds=2)
    stage.script_replies(reply_with_calls(tool_call_block("list_tokens")), [NO_ANSWER], [NO_ANSWER], [NO_ANSWER])
    stage.run_workflow()
    assert [request.call_tools for request in stage.driver.requests] == [True, False, False, False]
    (warning,) = [event for event in stage.events() if isinstance(event, WarningEvent)]
    assert warning.code == "roundLimit"
    assert "limit of 2 steps" in warning.message
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_a_last_round_that_answers_when_it_is_asked_again_has_no_warning(stage: Stage) -> None:
    stage.start_turn(max_rounds=2)
    stage.script_replies(reply_with_calls(tool_call_block("list_tokens")), [NO_ANSWER], "Done.")
    stage.run_workflow()
    assert not [event for event in stage.events() if isinstance(event, WarningEvent)]
    assert stage.streamed_text() == "Done."
    invariants.check_invariants(stage)


def test_calls_in_the_last_round_leave_a_warning(stage: Stage) -> None:
    stage.start_turn(max_rounds=1)
    stage.script_replies(reply_with_calls(tool_call_block("list_tokens"), text="Now the colours."))
    stage.run_workflow()
    (warning,) = [event.message for event in stage.events() if isinstance(event, WarningEvent)]
    assert "limit of 1 steps" in warning
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)
