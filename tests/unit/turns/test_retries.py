"""Retries (design §4): what failed in silence is repeated in place; what was shown is taken back or ends the turn."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.words.blocks import ReasoningBlock, TextBlock
from fermata.words.events import Reasoning, RoundRetracted, TurnError, Warned
from fermata.words.model import ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.machine import Machine
from tests.unit.turns.stage import OK, Stage, call, calls, failure, says

OVERLOADED = failure()


def how_it_ended(stage: Stage) -> TurnError:
    end = stage.terminals()[-1]
    assert isinstance(end, TurnError)
    return end


def test_a_silent_failure_is_repeated_in_place_with_a_growing_wait(stage: Stage) -> None:
    stage.start()
    stage.says([OVERLOADED], [OVERLOADED], "Hello.")
    stage.advance()
    first, second = stage.line.waits
    assert 0.75 <= first <= 1
    assert 1.5 <= second <= 2
    assert stage.types() == ["bridgeReady", "roundStarted", "text", "context", "usage", "done"]
    truth.check(stage)


def test_a_provider_that_names_a_wait_is_given_it(stage: Stage) -> None:
    stage.start()
    stage.says([failure("provider_quota", retry_after=7)], "Hello.")
    stage.advance()
    assert stage.line.waits == [7]


def test_a_wait_too_long_to_sit_out_ends_the_turn_instead_of_asking_again_at_once(stage: Stage) -> None:
    stage.start()
    stage.says([failure("provider_quota", retry_after=600)])
    stage.advance()
    assert len(stage.driver.asks) == 1
    assert how_it_ended(stage).code == "provider_quota"
    assert how_it_ended(stage).retryable
    truth.check(stage)


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_failure_that_stays_silent_is_tried_three_times_in_all(stage: Stage, dialect: Any) -> None:
    stage.start(dialect=dialect)
    stage.says([OVERLOADED], [OVERLOADED], [OVERLOADED])
    stage.advance()
    assert len(stage.driver.asks) == 3
    assert how_it_ended(stage).code == "provider_overloaded"
    truth.check(stage)


def test_a_failure_that_will_not_pass_is_not_repeated(stage: Stage) -> None:
    stage.start()
    stage.says([failure("provider_auth", retryable=False)])
    stage.advance()
    assert not stage.line.waits
    assert how_it_ended(stage).retryable is False
    truth.check(stage)


def test_a_key_that_is_gone_ends_the_turn_before_anything_is_asked(stage: Stage) -> None:
    stage.start()
    stage.desk.tables._client.delete_item(
        TableName=stage.desk.settings.settings_table,
        Key={"pk": {"S": "t#bakery"}, "sk": {"S": f"credential#{stage.credential.id}"}},
    )
    stage.advance()
    assert how_it_ended(stage).code == "provider_auth"
    assert not stage.ledger()
    assert not stage.driver.asks


def test_text_of_a_request_that_died_is_taken_back_and_told_anew(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), OVERLOADED], "Hello.")
    stage.advance()
    told = ["bridgeReady", "roundStarted", "text", "roundRetracted", "roundStarted", "text", "context", "usage", "done"]
    assert stage.types() == told
    assert truth.shown(stage.events()) == {1: "Hello."}
    truth.check(stage)


def test_a_request_that_dies_a_second_time_after_text_ends_the_turn_and_keeps_what_was_said(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), OVERLOADED], [TextDelta(text="Hell"), OVERLOADED])
    stage.advance()
    assert len(stage.driver.asks) == 2
    assert how_it_ended(stage).code == "provider_overloaded"
    kept = stage.messages()[-1]
    assert (kept.content, kept.partial) == ((TextBlock(text="Hell"),), True)
    truth.check(stage)


def test_an_instatic_browser_is_never_told_text_twice(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says([TextDelta(text="Hel"), OVERLOADED])
    stage.advance()
    assert len(stage.driver.asks) == 1
    assert how_it_ended(stage).code == "provider_overloaded"
    assert stage.text() == "Hel"
    truth.check(stage)


def test_text_that_was_not_told_yet_when_the_request_died_is_kept_too(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says([TextDelta(text="Hel"), TextDelta(text="lo."), OVERLOADED])
    stage.advance()
    assert stage.text() == "Hello."
    assert stage.messages()[-1].content == (TextBlock(text="Hello."),)
    truth.check(stage)


def test_reasoning_that_was_shown_is_taken_back_as_well(stage: Stage) -> None:
    stage.start()
    stage.says([ReasoningDelta(text="Hm."), OVERLOADED], [ReasoningDelta(text="Hm!"), *says("Hello.")])
    stage.advance()
    shown = [event for event in stage.events() if isinstance(event, Reasoning | RoundRetracted)]
    assert shown == [Reasoning(text="Hm."), RoundRetracted(round=1), Reasoning(text="Hm!")]
    truth.check(stage)


def test_an_instatic_turn_may_start_over_after_reasoning_its_browser_never_sees(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says([ReasoningDelta(text="Hm."), OVERLOADED], "Hello.")
    stage.advance()
    assert stage.text() == "Hello."
    truth.check(stage)


def test_a_provider_that_ends_without_a_last_word_has_failed(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel")], "Hello.")
    stage.advance()
    assert truth.shown(stage.events()) == {1: "Hello."}
    truth.check(stage)


def test_a_provider_that_says_nothing_at_all_is_not_asked_for_ever(stage: Stage) -> None:
    stage.start()
    stage.says([])
    stage.advance()
    assert how_it_ended(stage).code == "provider_error"
    assert len(stage.driver.asks) == 1
    truth.check(stage)


def test_each_round_may_start_over_once(stage: Stage) -> None:
    stage.start()
    for number in range(3):
        stage.says([TextDelta(text="Hel"), OVERLOADED], calls(call("list_documents"), text=f"Round {number}."))
    stage.says("Done.")
    stage.advance()
    assert stage.types().count("roundRetracted") == 3
    assert stage.types()[-1] == "done"
    truth.check(stage)


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
def test_a_function_that_fails_is_run_once_more(stage: Stage, dialect: Any) -> None:
    stage.start(dialect=dialect)
    stage.says([ValueError("a bug")], "Hello.")
    machine = Machine(stage)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Finished"]
    truth.check(stage)


def test_a_function_that_died_after_an_instatic_browser_saw_text_ends_its_turn(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says([TextDelta(text="Hel"), Death()])
    assert Machine(stage).run() == "Finished"
    assert how_it_ended(stage).code == "interrupted"
    assert stage.messages()[-1].content == (TextBlock(text="Hel"),)
    truth.check(stage)


def test_a_throttled_append_fails_the_function_and_its_retry_takes_the_text_back(stage: Stage) -> None:
    stage.start()
    stage.says(says("Hello."), says("Hello."))
    code = "ProvisionedThroughputExceededException"
    stage.seam.refuse("dynamodb.TransactWriteItems", code, contains="done")
    assert Machine(stage).run() == "Finished"
    assert stage.types().count("roundRetracted") == 1
    truth.check(stage)


def test_a_client_error_of_the_workflow_fails_the_function_which_then_finds_everything_done(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    machine = Machine(stage)
    stage.workflow.troubles.append(ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "SendTaskSuccess"))
    assert machine.run() == "Finished"
    assert len(stage.driver.asks) == 1
    truth.check(stage)


def test_a_reply_cut_off_at_the_token_limit_runs_none_of_its_calls_and_tells_the_model(stage: Stage) -> None:
    stage.start()
    first, second = call("deleteNode", nodeId="a"), call("list_documents")
    stage.says(calls(first, second, stop=Stop.MAX_TOKENS), "I will be brief.")
    assert stage.run() == "finished"
    assert not stage.requests()
    results = [message for message in stage.driver.asks[1].messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == [first.tool_call_id, second.tool_call_id]
    assert all("cut off at the token limit" in str(message.content[0]) for message in results)
    truth.check(stage)


def test_a_long_answer_cut_off_at_the_token_limit_is_done_and_the_user_hears_of_it(stage: Stage) -> None:
    stage.start()
    stage.says(says("As I was say", stop=Stop.MAX_TOKENS))
    assert stage.run() == "finished"
    (warned,) = [event for event in stage.events() if isinstance(event, Warned)]
    assert "cut off" in warned.message
    assert stage.messages()[-1].partial is None
    assert stage.types()[-1] == "done"
    truth.check(stage)


def test_a_refusal_is_an_error_after_one_request_and_leaves_no_empty_message(stage: Stage) -> None:
    stage.start()
    stage.says(calls(*(call("list_documents") for _ in range(4))), says("", stop=Stop.REFUSAL))
    assert stage.run() == "finished"
    assert how_it_ended(stage).code == "refused"
    assert len(stage.driver.asks) == 2
    assert [message.role for message in stage.messages()] == ["user", "assistant", "tool", "tool", "tool", "tool"]
    truth.check(stage)
    assert all(message.content for message in stage.driver.asks[-1].messages)


def test_a_refusal_says_why_where_the_provider_does(stage: Stage) -> None:
    stage.start()
    refused = Reply(blocks=(), stop=Stop.REFUSAL, tokens=Tokens(prompt=1), refusal="this asks for an exploit.")
    stage.says([refused])
    stage.run()
    assert how_it_ended(stage).message == "The model declined to answer this: this asks for an exploit."
    truth.check(stage)


def test_a_provider_that_pauses_itself_is_asked_to_go_on(stage: Stage) -> None:
    stage.start()
    stage.says(says("First half,", stop=Stop.PAUSE), "second half.")
    assert stage.run() == "finished"
    assert [message.role for message in stage.driver.asks[1].messages] == ["user", "assistant"]
    assert stage.text() == "First half,second half."
    truth.check(stage)


def test_a_provider_that_pauses_for_ever_is_not_asked_for_ever(staged: MakeStage) -> None:
    stage = staged(max_rounds=4)
    stage.start()
    stage.says(*(says("and", stop=Stop.PAUSE) for _ in range(4)))
    assert stage.run() == "finished"
    assert len(stage.driver.asks) == 4
    assert stage.types()[-1] == "done"
    truth.check(stage)


def test_on_the_last_round_tools_are_withheld_and_calls_are_not_run(staged: MakeStage) -> None:
    stage = staged(max_rounds=3)
    stage.start()
    stage.says(*(calls(call("list_documents"), text=f"{number}") for number in range(3)))
    assert stage.run() == "finished"
    assert [ask.call_tools for ask in stage.driver.asks] == [True, True, False]
    assert stage.types().count("toolCall") == 2
    assert stage.types()[-1] == "done"
    truth.check(stage)


def test_an_empty_reply_is_an_answer_too(stage: Stage) -> None:
    stage.start()
    stage.says("")
    assert stage.run() == "finished"
    assert stage.types() == ["bridgeReady", "roundStarted", "context", "usage", "done"]
    assert [message.role for message in stage.messages()] == ["user"]
    truth.check(stage)


def test_a_reply_of_nothing_but_thinking_shows_nothing_and_is_kept(stage: Stage) -> None:
    stage.start()
    thought = ReasoningBlock(provider="anthropic", model="model-1", payload={"type": "thinking", "thinking": "hm"})
    stage.says([ReasoningDelta(text="hm"), Reply(blocks=(thought,), stop=Stop.END, tokens=Tokens(prompt=1))])
    assert stage.run() == "finished"
    assert stage.messages()[-1].content == (thought,)
    stage.start("And now?")
    stage.says("Hello.")
    assert stage.run() == "finished"


def test_a_round_is_not_begun_without_the_time_to_finish_it(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("list_documents")), "Done.")
    wake = stage.advance(seconds=300)
    assert stage.workflow.outputs[wake.token]["next"] == "round"
    assert len(stage.driver.asks) == 1
    stage.advance(hint=stage.workflow.outputs[wake.token]["hint"])
    assert stage.types()[-1] == "done"
    truth.check(stage)


def test_an_answer_of_two_browsers_rounds_is_no_retry(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a")), calls(call("deleteNode", nodeId="b")), "Done.")
    machine = Machine(stage)
    for _ in range(2):
        assert machine.run() == "RunRound"
        stage.answer(OK)
    assert machine.run() == "Finished"
    assert "roundRetracted" not in stage.types()
    truth.check(stage)
