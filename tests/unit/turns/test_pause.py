"""The pause of a round: changed only on the version that was read, and no resumption is ever lost."""

import pytest

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.errors import NotFound, ServiceUnavailable
from fermata.turns.pause import build_pause_key, store_pause_version
from fermata.turns.turn_log import StaleState
from tests.unit.turns.scenarios import LARGE_TEXT, make_patient_tool, run_until_waiting
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine


def pause_item(stage: Stage, round_: int = 1) -> Item:
    item = stage.resources.tables.get_item(
        stage.resources.settings.bridges_table, stage.turn.pk, build_pause_key(round_)
    )
    assert item is not None
    return item


def test_a_round_has_one_pause_with_token_and_deadline(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "list_documents", "no_such_tool")
    pause = stage.load_pause()
    assert (pause.version, pause.callback_token, pause.epoch) == (1, machine.invocation.token, machine.invocation.epoch)
    assert [call.state for call in pause.calls] == ["requested", "waiting", "waiting"]
    assert pause.calls[0].deadline == stage.resources.clock.time() + 90
    stage.answer_request(OK)
    assert stage.load_pause().version == 2
    assert [call.state for call in stage.load_pause().calls] == ["answered", "waiting", "waiting"]


def test_every_change_needs_the_version_that_was_read(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    read_pause = stage.load_pause()
    stage.answer_request(OK)
    with pytest.raises(StaleState):
        store_pause_version(
            stage.resources, read_pause.model_copy(update={"version": read_pause.version + 1, "callback_token": "mine"})
        )
    assert stage.load_pause().callback_token == read_pause.callback_token


def test_the_last_answer_sends_the_stored_token(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.answer_request(OK)
    assert not stage.workflow.sent
    assert stage.workflow.heartbeats[-1] == machine.invocation.token
    stage.answer_request(OK)
    assert stage.workflow.sent == [(machine.invocation.token, "round", 0)]


def test_an_expired_token_is_ignored(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    machine.time_out()
    stage.answer_request(OK)
    assert stage.workflow.sent[-1][0] not in stage.workflow.outputs
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "Finished"]


def test_a_failed_send_is_a_503_and_the_repeated_answer_sends_again(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[-1].request_id
    stage.workflow.next_errors.append(ServiceUnavailable("The workflow could not be resumed."))
    with pytest.raises(ServiceUnavailable):
        stage.answer_request(OK)
    assert machine.is_waiting
    stage.answer_request(OK, request)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert stage.event_types().count("toolResult") == 1


def test_a_browser_round_takes_two_state_transitions(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "list_documents", "deleteNode", "list_documents")
    stage.answer_request(OK)
    assert machine.run() == "RunRound"
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "RunRound", "Finished"]


def test_a_wait_longer_than_the_heartbeat_timeout_is_held_with_its_own_token(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    assert machine.state == "Hold"
    assert machine.input["seconds"] == 86400
    pause = stage.load_pause()
    assert (pause.callback_token, pause.is_held) == (machine.invocation.token, True)
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Hold", "RunRound", "Finished"]


def test_hold_finds_an_answer_from_before_its_invocation(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_the_baker")))
    machine = StateMachine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.answer_request(OK)
    assert stage.workflow.sent[-1][0] not in stage.workflow.open_tokens
    stage.script_replies("Done.")
    assert machine.run() == "Finished"


def test_hold_finds_an_answer_from_before_its_token_was_stored(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_the_baker")), "Done.")
    machine = StateMachine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.faults.interrupt("dynamodb.PutItem", lambda: stage.answer_request(OK), contains=machine.invocation.token)
    assert machine.run() == "Finished"
    assert stage.faults.is_spent
    assert stage.event_types().count("toolResult") == 1


def test_hold_finds_a_cancel_from_before_its_token_was_stored(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_the_baker")))
    machine = StateMachine(stage)
    while machine.state != "Hold":
        machine.step()
    stage.faults.interrupt("dynamodb.PutItem", stage.cancel_turn, contains=machine.invocation.token)
    assert machine.run() == "Finished"
    assert stage.faults.is_spent


def test_an_older_hold_never_replaces_the_newer_token(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_the_baker")), "Done.")
    machine = StateMachine(stage)
    while machine.state != "Hold":
        machine.step()
    undead = machine.invocation
    machine.fail()  # Step Functions lost sight of the function and starts another one; the first goes on
    machine.run()
    stage.advance_turn(undead)
    assert stage.load_pause().callback_token == machine.invocation.token
    stage.answer_request(OK)
    assert machine.run() == "Finished"


def test_a_request_behind_a_held_one_gets_its_own_timeout(stage: Stage) -> None:
    """Hold has no heartbeat timeout, and its own end may be a month away."""
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker", "deleteNode")
    stage.answer_request(OK)
    machine.run()
    assert machine.visited == ["RunRound", "Hold", "RunRound", "Hold"]
    assert machine.input["seconds"] == 90
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"


def test_no_deadline_is_later_than_the_turns_expiry(stage: Stage) -> None:
    """The turn must end, and free its conversation, before its rows expire."""
    stage.add_tools(make_patient_tool(seconds=365 * 86400))
    machine = run_until_waiting(stage, "ask_the_baker")
    latest = stage.turn.expires - 7 * 86400
    assert stage.load_pause().calls[0].deadline == latest
    assert machine.input["seconds"] == latest - stage.resources.clock.time()


def test_the_input_of_a_requested_call_is_in_the_log_only(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html=LARGE_TEXT)))
    stage.run_workflow()
    item = pause_item(stage)
    assert len(item["calls"]) < 1_000
    assert stage.show_turn()["pending"][0]["input"]["html"] == LARGE_TEXT


def test_waiting_calls_with_large_inputs_are_stored_in_the_bucket(stage: Stage) -> None:
    """Ten inputs have 3 MB; an item may have 400 KB."""
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(
            *(tool_call_block("insertHtml", parentId=f"n{number}", html=LARGE_TEXT) for number in range(10))
        ),
        "Done.",
    )
    stage.run_workflow()
    assert "blob" in pause_item(stage)
    for number in range(10):
        assert stage.tool_requests()[-1].input == {"parentId": f"n{number}", "html": LARGE_TEXT}
        stage.answer_request(OK)
    assert "blob" not in pause_item(stage)
    assert stage.run_workflow() == "finished"


def test_a_request_id_of_another_round_is_not_found(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    first = stage.tool_requests()[-1].request_id
    with pytest.raises(NotFound):
        stage.answer_request(OK, first.replace("1.", "2.", 1))


def test_more_results_than_a_transaction_takes_are_split(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(
            *(tool_call_block("no_such_tool") for _ in range(120)), tool_call_block("deleteNode", nodeId="n")
        ),
        "Done.",
    )
    assert stage.run_workflow() == "waiting"
    assert stage.event_types().count("toolResult") == 120
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert [message.position for message in stage.load_messages()] == sorted(
        {m.position for m in stage.load_messages()}
    )
    assert len(stage.load_messages()) == 1 + 1 + 121 + 1
