"""Pause (design §4): one item per round, changed only on the version that was read, and no wake-up is ever lost."""

import pytest

from fermata.aws.dynamo import Item
from fermata.turns import pause as pauses
from fermata.turns.log import Moved
from fermata.words.errors import NotFound, Unavailable
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import LARGE, asking, patient_tool
from tests.unit.turns.stage import OK, Stage, call, calls


def pause_item(stage: Stage, round_: int = 1) -> Item:
    found = stage.desk.tables.get(stage.desk.settings.bridges_table, stage.turn.pk, pauses.sk(round_))
    assert found is not None
    return found


def test_a_round_has_one_pause_that_says_who_waits_with_what_until_when(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "list_documents", "no_such_tool")
    pause = stage.pause()
    assert (pause.version, pause.token, pause.epoch) == (1, machine.wake.token, machine.wake.epoch)
    assert [one.state for one in pause.calls] == ["requested", "waiting", "waiting"]
    assert pause.calls[0].deadline == stage.desk.clock.time() + 90
    stage.answer(OK)
    assert stage.pause().version == 2
    assert [one.state for one in stage.pause().calls] == ["answered", "waiting", "waiting"]


def test_every_change_needs_the_version_that_was_read(stage: Stage) -> None:
    asking(stage, "deleteNode")
    seen = stage.pause()
    stage.answer(OK)
    with pytest.raises(Moved):
        pauses.replace(stage.desk, seen.model_copy(update={"version": seen.version + 1, "token": "mine"}))
    assert stage.pause().token == seen.token


def test_whoever_answers_last_sends_the_token_that_is_stored(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "deleteNode")
    stage.answer(OK)
    assert not stage.workflow.sent
    assert stage.workflow.beats[-1] == machine.wake.token
    stage.answer(OK)
    assert stage.workflow.sent == [(machine.wake.token, "round", 0)]


def test_a_token_that_nobody_waits_for_any_more_means_that_somebody_else_went_on(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    machine.ring()
    stage.answer(OK)
    assert stage.workflow.sent[-1][0] not in stage.workflow.outputs
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "Finished"]


def test_any_other_failed_send_is_a_503_and_the_repeated_answer_repeats_the_send(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    request = stage.requests()[-1].request_id
    stage.workflow.troubles.append(Unavailable("The workflow could not be woken."))
    with pytest.raises(Unavailable):
        stage.answer(OK)
    assert machine.waits
    stage.answer(OK, request)
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert stage.types().count("toolResult") == 1


def test_a_browser_round_costs_two_transitions_whatever_the_order_of_its_calls(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "list_documents", "deleteNode", "list_documents")
    stage.answer(OK)
    assert machine.run() == "RunRound"
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "RunRound", "Finished"]


def test_a_wait_longer_than_the_alarm_clock_is_held_with_its_own_token(stage: Stage) -> None:
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker")
    assert machine.state == "Hold"
    assert machine.input["seconds"] == 86400
    pause = stage.pause()
    assert (pause.token, pause.held) == (machine.wake.token, True)
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Hold", "RunRound", "Finished"]


def test_an_answer_before_hold_has_its_token_is_found_by_hold(stage: Stage) -> None:
    stage.learn(patient_tool())
    stage.start()
    stage.says(calls(call("ask_the_baker")))
    machine = Machine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.answer(OK)
    assert stage.workflow.sent[-1][0] not in stage.workflow.open
    stage.says("Done.")
    assert machine.run() == "Finished"


def test_an_answer_between_holds_look_and_its_token_is_found_by_hold(stage: Stage) -> None:
    stage.learn(patient_tool())
    stage.start()
    stage.says(calls(call("ask_the_baker")), "Done.")
    machine = Machine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.seam.meanwhile("dynamodb.PutItem", lambda: stage.answer(OK), contains=machine.wake.token)
    assert machine.run() == "Finished"
    assert stage.seam.is_spent
    assert stage.types().count("toolResult") == 1


def test_a_cancel_between_holds_look_and_its_token_lets_the_execution_finish(stage: Stage) -> None:
    stage.learn(patient_tool())
    stage.start()
    stage.says(calls(call("ask_the_baker")))
    machine = Machine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.seam.meanwhile("dynamodb.PutItem", stage.cancel, contains=machine.wake.token)
    assert machine.run() == "Finished"
    assert stage.seam.is_spent


def test_an_old_hold_never_puts_its_dead_token_in_the_place_of_a_living_one(stage: Stage) -> None:
    stage.learn(patient_tool())
    stage.start()
    stage.says(calls(call("ask_the_baker")), "Done.")
    machine = Machine(stage)
    while machine.state != "Hold":
        machine.step()
    undead = machine.wake
    machine.fail()  # Step Functions lost sight of the function and starts another one; the first goes on
    machine.run()
    stage.advance(undead)
    assert stage.pause().token == machine.wake.token
    stage.answer(OK)
    assert machine.run() == "Finished"


def test_a_request_that_follows_a_long_one_gets_a_clock_of_its_own(stage: Stage) -> None:
    """Hold has no alarm clock but its end, which may be a month away."""
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker", "deleteNode")
    stage.answer(OK)
    machine.run()
    assert machine.visited == ["RunRound", "Hold", "RunRound", "Hold"]
    assert machine.input["seconds"] == 90
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"


def test_no_wait_outlasts_the_memory_of_its_turn(stage: Stage) -> None:
    """The turn must end, and free its conversation, before its rows expire."""
    stage.learn(patient_tool(seconds=365 * 86400))
    machine = asking(stage, "ask_the_baker")
    latest = stage.turn.expires - 7 * 86400
    assert stage.pause().calls[0].deadline == latest
    assert machine.input["seconds"] == latest - stage.desk.clock.time()


def test_the_input_of_a_requested_call_lives_in_the_log_only(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("insertHtml", parentId="root", html=LARGE)))
    stage.run()
    item = pause_item(stage)
    assert len(item["calls"]) < 1_000
    assert stage.look()["pending"][0]["input"]["html"] == LARGE


def test_calls_that_wait_with_large_inputs_lie_in_the_bucket(stage: Stage) -> None:
    """Ten of them would be 3 MB, and an item has 400 KB."""
    stage.start()
    stage.says(calls(*(call("insertHtml", parentId=f"n{number}", html=LARGE) for number in range(10))), "Done.")
    stage.run()
    assert "blob" in pause_item(stage)
    for number in range(10):
        assert stage.requests()[-1].input == {"parentId": f"n{number}", "html": LARGE}
        stage.answer(OK)
    assert "blob" not in pause_item(stage)
    assert stage.run() == "finished"


def test_a_request_of_another_round_is_not_this_rounds(stage: Stage) -> None:
    asking(stage, "deleteNode")
    first = stage.requests()[-1].request_id
    with pytest.raises(NotFound):
        stage.answer(OK, first.replace("1.", "2.", 1))


def test_more_results_at_once_than_a_transaction_takes_are_told_in_several(stage: Stage) -> None:
    stage.start()
    stage.says(calls(*(call("no_such_tool") for _ in range(120)), call("deleteNode", nodeId="n")), "Done.")
    assert stage.run() == "waiting"
    assert stage.types().count("toolResult") == 120
    stage.answer(OK)
    assert stage.run() == "finished"
    assert [message.position for message in stage.messages()] == sorted({m.position for m in stage.messages()})
    assert len(stage.messages()) == 1 + 1 + 121 + 1
