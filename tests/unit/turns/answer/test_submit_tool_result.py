"""Tool results: idempotent for the open request, refused with a reason for everything else."""

import threading
from typing import Any

import pytest

from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, Conflict, Forbidden, NotFound, ServiceUnavailable
from fermata.domain.events import ToolRequestEvent, ToolResultEvent
from fermata.turns.answer.submit_tool_result import MAX_COMMIT_ATTEMPTS
from fermata.turns.pause import hash_result, store_pause_version
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import LARGE_TEXT, make_patient_tool, run_until_waiting
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, tool_call_block

TRANSACT = "dynamodb.TransactWriteItems"
OTHER: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n2"]}}


def make_caller(user: str = "ada", tenant: str = "bakery", *capabilities: str) -> Caller:
    return Caller(tenant=tenant, user=user, capabilities=frozenset(capabilities) or ADA.capabilities)


def finish_turn(stage: Stage) -> None:
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage)


def test_a_result_is_streamed_stored_and_sent_to_the_model(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.answer_request({"ok": True, "data": {"removed": 3}})
    result_event = stage.events()[-1]
    assert isinstance(result_event, ToolResultEvent)
    assert result_event.ok
    stage.script_replies("Done.")
    stage.run_workflow()
    [result] = stage.results_sent_to_model()
    assert result.data == {"removed": 3}


def test_a_failed_result_is_sent_to_the_model(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.answer_request({"ok": False, "error": "There is no such node."})
    result_event = stage.events()[-1]
    assert isinstance(result_event, ToolResultEvent)
    assert (result_event.ok, result_event.error) == (False, "There is no such node.")
    finish_turn(stage)


def test_the_same_result_five_times_is_one_answer(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    for _ in range(5):
        stage.answer_request(OK, request)
    assert stage.event_types().count("toolResult") == 1
    finish_turn(stage)
    assert len([message for message in stage.load_messages() if message.role == "tool"]) == 1


def test_the_same_result_five_times_at_once_is_one_answer_and_always_accepted(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    request = stage.tool_requests()[0].request_id
    barrier = threading.Barrier(5)
    refused = list[Exception]()

    def post() -> None:
        barrier.wait()
        try:
            stage.answer_request(OK, request)
        except ApiError as refusal:
            refused.append(refusal)

    posts = [threading.Thread(target=post) for _ in range(5)]
    for thread in posts:
        thread.start()
    for thread in posts:
        thread.join()
    assert refused == []
    assert stage.event_types().count("toolResult") == 1
    stage.answer_request(OK)
    finish_turn(stage)


def test_the_order_of_members_does_not_make_a_different_result(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.answer_request({"ok": True, "data": {"a": 1, "b": [2]}}, request)
    stage.answer_request({"data": {"b": [2], "a": 1}, "ok": True}, request)
    assert hash_result({"a": 1, "b": 2}) != hash_result({"a": 1, "b": 3})


def test_a_repeated_result_may_have_another_snapshot(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.answer_request(OK, request, snapshot={"page": 1})
    stage.answer_request(OK, request, snapshot={"page": 2})
    stage.answer_request(OK, request)


def test_a_different_result_conflicts_and_changes_nothing(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.answer_request(OK, request)
    with pytest.raises(Conflict) as refused:
        stage.answer_request(OTHER, request)
    assert "different result" in refused.value.message
    finish_turn(stage)


def test_a_different_result_at_the_same_time_conflicts(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.faults.interrupt(TRANSACT, lambda: stage.answer_request(OK, request), contains="n2")
    with pytest.raises(Conflict):
        stage.answer_request(OTHER, request)
    finish_turn(stage)


def test_an_unknown_request_is_not_found(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    for request in ("", "1", "1.0", "1.0.guessed", "9.0.guessed", "x.0.y", "-1.0.y", "999999999.0.y"):
        with pytest.raises(NotFound):
            stage.answer_request(OK, request or " ")
    assert stage.event_types()[-1] == "toolRequest"


def test_a_call_behind_the_open_one_cannot_be_answered_yet(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    first = stage.tool_requests()[0].request_id
    with pytest.raises(NotFound):
        stage.answer_request(OK, first.replace("1.0.", "1.1.", 1))
    stage.answer_request(OK, first)
    stage.answer_request(OK)
    finish_turn(stage)


def test_calls_are_requested_one_at_a_time_in_the_models_order(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(*(tool_call_block("deleteNode", nodeId=f"n{number}") for number in range(3))))
    stage.run_workflow()
    for number in range(3):
        types = [event.type for event in stage.events() if isinstance(event, ToolRequestEvent | ToolResultEvent)]
        assert types == ["toolRequest", "toolResult"] * number + ["toolRequest"]
        assert stage.tool_requests()[-1].input == {"nodeId": f"n{number}"}
        stage.answer_request(OK)
    finish_turn(stage)


def test_a_repeated_result_of_an_earlier_call_is_accepted(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    first = stage.tool_requests()[0].request_id
    stage.answer_request(OK, first)
    stage.answer_request(OK, first)
    stage.answer_request(OK)
    stage.answer_request(OK, first)
    finish_turn(stage)


def test_a_repeated_result_of_an_earlier_round_changes_nothing(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    first = stage.tool_requests()[0].request_id
    stage.answer_request(OK, first)
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="m")))
    machine.run()
    before = stage.entries()
    stage.answer_request(OK, first)
    assert stage.entries() == before
    assert machine.is_waiting
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"


def test_after_the_end_only_repeated_results_are_accepted(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    first = stage.tool_requests()[0].request_id
    stage.answer_request(OK, first)
    second = stage.tool_requests()[1].request_id
    stage.cancel_turn()
    stage.answer_request(OK, first)
    with pytest.raises(NotFound):
        stage.answer_request(OK, second)
    with pytest.raises(Conflict):
        stage.answer_request(OTHER, first)
    invariants.check_invariants(stage)


def test_a_result_that_races_the_end_is_refused(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.faults.interrupt(TRANSACT, stage.cancel_turn, contains="toolResult")
    with pytest.raises(NotFound):
        stage.answer_request(OK)
    invariants.check_invariants(stage)


def test_another_user_finds_no_request(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    with pytest.raises(NotFound):
        stage.answer_request(OK, caller=make_caller("ben"))


def test_a_caller_who_manages_turns_may_answer_for_others(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.answer_request(OK, caller=make_caller("ben", "bakery", "ai.turns.manage", "ai.tools.write"))
    finish_turn(stage)


def test_another_tenant_finds_no_request(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    with pytest.raises(NotFound):
        stage.answer_request(OK, caller=make_caller("ada", "butcher"))


def test_answering_a_write_needs_the_write_capability(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    with pytest.raises(Forbidden):
        stage.answer_request(OK, caller=make_caller("ada", "bakery", "ai.chat"))
    stage.answer_request(OK, caller=make_caller("ada", "bakery", "ai.tools.write"))
    finish_turn(stage)


def test_answering_a_read_needs_the_chat_capability(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n")))
    stage.run_workflow()
    with pytest.raises(Forbidden):
        stage.answer_request(OK, caller=make_caller("ada", "bakery", "ai.tools.write"))
    stage.answer_request(OK, caller=make_caller("ada", "bakery", "ai.chat"))
    finish_turn(stage)


def test_a_turn_started_without_the_write_capability_requests_no_write(stage: Stage) -> None:
    stage.caller = make_caller("ada", "bakery", "ai.chat", "site.read")
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")), "I may not.")
    assert stage.run_workflow() == "finished"
    assert not stage.tool_requests()
    assert "not permitted" in str(next(event.error for event in stage.events() if isinstance(event, ToolResultEvent)))


def test_a_repeated_result_is_recognized_when_its_response_was_lost(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.faults.lose_response(TRANSACT, contains="toolResult")
    stage.answer_request(OK)
    assert stage.faults.is_spent
    finish_turn(stage)


def test_a_repeated_result_resumes_a_turn_whose_first_answer_died_before_that(
    stage: Stage,
) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.faults.kill_process(TRANSACT, contains="toolResult")
    with pytest.raises(ProcessDied):
        stage.answer_request(OK)
    assert machine.is_waiting
    stage.answer_request(OK, request)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_result_that_loses_every_race_gets_a_response_to_retry(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id

    def change_pause() -> None:
        read_pause = stage.load_pause()
        store_pause_version(stage.resources, read_pause.model_copy(update={"version": read_pause.version + 1}))

    for number in range(MAX_COMMIT_ATTEMPTS):
        stage.faults.interrupt(TRANSACT, change_pause, contains="toolResult", skip=number)
    with pytest.raises(ServiceUnavailable):
        stage.answer_request(OK, request)


def test_the_next_server_tool_gets_the_answers_snapshot(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "list_documents", snapshot={"site": {"pages": []}, "page": {"id": "old"}})
    pages = [{"id": "new", "slug": "new", "title": "New", "rootNodeId": "r", "nodes": {}}]
    stage.answer_request(OK, snapshot={"site": {"pages": pages}, "page": {"id": "new"}})
    stage.script_replies("Done.")
    stage.run_workflow()
    results = stage.results_sent_to_model()
    assert "new" in str(results[1].data)


def test_a_result_of_300_kb_is_stored_and_sent_to_the_model(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    run_until_waiting(stage, "ask_the_baker")
    stage.answer_request({"ok": True, "data": {"html": "x" * 90_000, "more": ["y" * 1000] * 5}})
    finish_turn(stage)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n")))
    stage.run_workflow()
    stage.answer_request({"ok": True, "data": {"html": LARGE_TEXT}})
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    results = stage.results_sent_to_model()
    assert results[-1].data["truncated"]
    assert len(str(results[-1].data)) < 110_000


def test_a_result_may_hold_any_text(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.answer_request({"ok": True, "data": {"html": "🦀 \ud83e \x00 \u2028", "n": 1e300, "deep": [[[[None]]]]}})
    finish_turn(stage)


@pytest.mark.parametrize("result", [None, 7, "text", [], {"ok": 1}, {"ok": False}, {"ok": False, "error": 5}])
def test_a_turn_continues_after_any_result(stage: Stage, result: Any) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.answer_request(result)
    finish_turn(stage)
