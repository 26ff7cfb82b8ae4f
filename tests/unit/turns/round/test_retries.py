"""Retries (design §4): what failed in silence is repeated in place; what was shown is taken back or ends the turn."""

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


def how_it_ended(stage: Stage) -> ErrorEvent:
    end = stage.terminal_events()[-1]
    assert isinstance(end, ErrorEvent)
    return end


def test_a_silent_failure_is_repeated_in_place_with_a_growing_wait(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([OVERLOADED], [OVERLOADED], "Hello.")
    stage.advance_turn()
    first, second = stage.connection.sleeps
    assert 0.75 <= first <= 1
    assert 1.5 <= second <= 2
    assert stage.event_types() == ["bridgeReady", "roundStarted", "text", "context", "usage", "done"]
    invariants.check_invariants(stage)


def test_a_provider_that_names_a_wait_is_given_it(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_quota", retry_after=7)], "Hello.")
    stage.advance_turn()
    assert stage.connection.sleeps == [7]


def test_a_wait_too_long_to_sit_out_ends_the_turn_instead_of_asking_again_at_once(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_quota", retry_after=600)])
    stage.advance_turn()
    assert len(stage.driver.requests) == 1
    assert how_it_ended(stage).code == "provider_quota"
    assert how_it_ended(stage).retryable
    invariants.check_invariants(stage)


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_failure_that_stays_silent_is_tried_three_times_in_all(stage: Stage, dialect: Any) -> None:
    stage.start_turn(dialect=dialect)
    stage.script_replies([OVERLOADED], [OVERLOADED], [OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 3
    assert how_it_ended(stage).code == "provider_overloaded"
    invariants.check_invariants(stage)


def test_a_failure_that_will_not_pass_is_not_repeated(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error("provider_auth", retryable=False)])
    stage.advance_turn()
    assert not stage.connection.sleeps
    assert how_it_ended(stage).retryable is False
    invariants.check_invariants(stage)


def test_a_key_that_is_gone_ends_the_turn_before_anything_is_asked(stage: Stage) -> None:
    stage.start_turn()
    stage.resources.tables._client.delete_item(
        TableName=stage.resources.settings.settings_table,
        Key={"pk": {"S": "t#bakery"}, "sk": {"S": f"credential#{stage.credential.id}"}},
    )
    stage.advance_turn()
    assert how_it_ended(stage).code == "provider_auth"
    assert not stage.ledger_rows()
    assert not stage.driver.requests


def test_text_of_a_request_that_died_is_taken_back_and_told_anew(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED], "Hello.")
    stage.advance_turn()
    told = ["bridgeReady", "roundStarted", "text", "roundRetracted", "roundStarted", "text", "context", "usage", "done"]
    assert stage.event_types() == told
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_request_that_dies_a_second_time_after_text_ends_the_turn_and_keeps_what_was_said(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED], [TextDelta(text="Hell"), OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 2
    assert how_it_ended(stage).code == "provider_overloaded"
    kept = stage.load_messages()[-1]
    assert (kept.content, kept.partial) == ((TextBlock(text="Hell"),), True)
    invariants.check_invariants(stage)


def test_an_instatic_browser_is_never_told_text_twice(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), OVERLOADED])
    stage.advance_turn()
    assert len(stage.driver.requests) == 1
    assert how_it_ended(stage).code == "provider_overloaded"
    assert stage.streamed_text() == "Hel"
    invariants.check_invariants(stage)


def test_text_that_was_not_told_yet_when_the_request_died_is_kept_too(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), TextDelta(text="lo."), OVERLOADED])
    stage.advance_turn()
    assert stage.streamed_text() == "Hello."
    assert stage.load_messages()[-1].content == (TextBlock(text="Hello."),)
    invariants.check_invariants(stage)


def test_reasoning_that_was_shown_is_taken_back_as_well(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [ReasoningDelta(text="Hm."), OVERLOADED], [ReasoningDelta(text="Hm!"), *reply_with_text("Hello.")]
    )
    stage.advance_turn()
    shown = [event for event in stage.events() if isinstance(event, ReasoningEvent | RoundRetractedEvent)]
    assert shown == [ReasoningEvent(text="Hm."), RoundRetractedEvent(round=1), ReasoningEvent(text="Hm!")]
    invariants.check_invariants(stage)


def test_an_instatic_turn_may_start_over_after_reasoning_its_browser_never_sees(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([ReasoningDelta(text="Hm."), OVERLOADED], "Hello.")
    stage.advance_turn()
    assert stage.streamed_text() == "Hello."
    invariants.check_invariants(stage)


def test_a_provider_that_ends_without_a_last_word_has_failed(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel")], "Hello.")
    stage.advance_turn()
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_provider_that_says_nothing_at_all_is_not_asked_for_ever(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([])
    stage.advance_turn()
    assert how_it_ended(stage).code == "provider_error"
    assert len(stage.driver.requests) == 1
    invariants.check_invariants(stage)


def test_each_round_may_start_over_once(stage: Stage) -> None:
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
def test_a_function_that_fails_is_run_once_more(stage: Stage, dialect: Any) -> None:
    stage.start_turn(dialect=dialect)
    stage.script_replies([ValueError("a bug")], "Hello.")
    machine = StateMachine(stage)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Finished"]
    invariants.check_invariants(stage)


def test_a_function_that_died_after_an_instatic_browser_saw_text_ends_its_turn(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    assert StateMachine(stage).run() == "Finished"
    assert how_it_ended(stage).code == "interrupted"
    assert stage.load_messages()[-1].content == (TextBlock(text="Hel"),)
    invariants.check_invariants(stage)


def test_a_throttled_append_fails_the_function_and_its_retry_takes_the_text_back(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("Hello."), reply_with_text("Hello."))
    code = "ProvisionedThroughputExceededException"
    stage.faults.fail_call("dynamodb.TransactWriteItems", code, contains="done")
    assert StateMachine(stage).run() == "Finished"
    assert stage.event_types().count("roundRetracted") == 1
    invariants.check_invariants(stage)


def test_a_client_error_of_the_workflow_fails_the_function_which_then_finds_everything_done(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    machine = StateMachine(stage)
    stage.workflow.next_errors.append(
        ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "SendTaskSuccess")
    )
    assert machine.run() == "Finished"
    assert len(stage.driver.requests) == 1
    invariants.check_invariants(stage)


def test_a_reply_cut_off_at_the_token_limit_runs_none_of_its_calls_and_tells_the_model(stage: Stage) -> None:
    stage.start_turn()
    first, second = tool_call_block("deleteNode", nodeId="a"), tool_call_block("list_documents")
    stage.script_replies(reply_with_calls(first, second, stop=FinishReason.MAX_TOKENS), "I will be brief.")
    assert stage.run_workflow() == "finished"
    assert not stage.tool_requests()
    results = [message for message in stage.driver.requests[1].messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == [first.tool_call_id, second.tool_call_id]
    assert all("cut off at the token limit" in str(message.content[0]) for message in results)
    invariants.check_invariants(stage)


def test_a_long_answer_cut_off_at_the_token_limit_is_done_and_the_user_hears_of_it(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("As I was say", stop=FinishReason.MAX_TOKENS))
    assert stage.run_workflow() == "finished"
    (warned,) = [event for event in stage.events() if isinstance(event, WarningEvent)]
    assert "cut off" in warned.message
    assert stage.load_messages()[-1].partial is None
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_a_refusal_is_an_error_after_one_request_and_leaves_no_empty_message(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(*(tool_call_block("list_documents") for _ in range(4))),
        reply_with_text("", stop=FinishReason.REFUSAL),
    )
    assert stage.run_workflow() == "finished"
    assert how_it_ended(stage).code == "refused"
    assert len(stage.driver.requests) == 2
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", "tool", "tool", "tool", "tool"]
    invariants.check_invariants(stage)
    assert all(message.content for message in stage.driver.requests[-1].messages)


def test_a_refusal_says_why_where_the_provider_does(stage: Stage) -> None:
    stage.start_turn()
    refused = ModelResponse(
        blocks=(), stop=FinishReason.REFUSAL, tokens=TokenUsage(prompt=1), refusal="this asks for an exploit."
    )
    stage.script_replies([refused])
    stage.run_workflow()
    assert how_it_ended(stage).message == "The model declined to answer this: this asks for an exploit."
    invariants.check_invariants(stage)


def test_a_provider_that_pauses_itself_is_asked_to_go_on(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_text("First half,", stop=FinishReason.PAUSE), "second half.")
    assert stage.run_workflow() == "finished"
    assert [message.role for message in stage.driver.requests[1].messages] == ["user", "assistant"]
    assert stage.streamed_text() == "First half,second half."
    invariants.check_invariants(stage)


def test_a_provider_that_pauses_for_ever_is_not_asked_for_ever(staged: MakeStage) -> None:
    stage = staged(max_rounds=4)
    stage.start_turn()
    stage.script_replies(*(reply_with_text("and", stop=FinishReason.PAUSE) for _ in range(4)))
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests) == 4
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_on_the_last_round_tools_are_withheld_and_calls_are_not_run(staged: MakeStage) -> None:
    stage = staged(max_rounds=3)
    stage.start_turn()
    stage.script_replies(
        *(reply_with_calls(tool_call_block("list_documents"), text=f"{number}") for number in range(3))
    )
    assert stage.run_workflow() == "finished"
    assert [ask.call_tools for ask in stage.driver.requests] == [True, True, False]
    assert stage.event_types().count("toolCall") == 2
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_an_empty_reply_is_an_answer_too(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("")
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "context", "usage", "done"]
    assert [message.role for message in stage.load_messages()] == ["user"]
    invariants.check_invariants(stage)


def test_a_reply_of_nothing_but_thinking_shows_nothing_and_is_kept(stage: Stage) -> None:
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


def test_a_round_is_not_begun_without_the_time_to_finish_it(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "Done.")
    invocation = stage.advance_turn(seconds=300)
    assert stage.workflow.outputs[invocation.token]["next"] == "round"
    assert len(stage.driver.requests) == 1
    stage.advance_turn(hint=stage.workflow.outputs[invocation.token]["hint"])
    assert stage.event_types()[-1] == "done"
    invariants.check_invariants(stage)


def test_an_answer_of_two_browsers_rounds_is_no_retry(stage: Stage) -> None:
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
