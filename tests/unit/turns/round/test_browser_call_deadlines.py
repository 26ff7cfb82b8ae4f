"""Deadlines and heartbeat timeouts: a timeout only makes an invocation look at the state, which decides."""

import threading

import pytest

from fermata.domain.errors import NotFound
from fermata.domain.events import CancelledEvent, ErrorEvent, TextEvent
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta, TokenUsage
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.scenarios import make_patient_tool, make_server_tool, run_until_waiting
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    RecordingConnection,
    Stage,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.unit.turns.state_machine import StateMachine

NONE = TokenUsage()


def result_errors(stage: Stage) -> list[str | None]:
    """Return the errors of the results that the model read last, None for a success."""
    return [block.error for block in stage.results_sent_to_model()]


def test_waiting_begins_with_a_heartbeat(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    assert machine.state == "RunRound"
    assert stage.workflow.heartbeats[-1] == machine.invocation.token


def test_a_deadline_is_90_seconds_after_the_request(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.pass_time(80)
    stage.answer_request(OK)
    call = stage.load_pause().requested_call
    assert call is not None
    assert call.deadline == stage.resources.clock.time() + 90


def test_a_heartbeat_timeout_before_the_deadline_holds_for_the_seconds_left(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(60)
    machine.time_out()
    machine.run()
    assert machine.state == "Hold"
    assert machine.input["seconds"] == 30
    assert stage.load_pause().callback_token == machine.invocation.token
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_heartbeat_timeout_after_the_answer_continues(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    machine.time_out()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_an_unanswered_request_ends_the_turn(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.pass_time(90)
    machine.time_out()
    assert machine.run() == "Finished"
    [end] = stage.terminal_events()
    assert isinstance(end, ErrorEvent)
    assert (end.code, end.retryable) == ("no_answer", True)
    assert "deleteNode" in end.message
    assert stage.event_types()[-4:] == ["toolResult", "toolResult", "usage", "error"]
    invariants.check_invariants(stage)


def test_an_unanswered_request_is_reported_to_the_model_if_so_set(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    stage.add_tools(make_server_tool("count", dict, idempotent=True))
    machine = run_until_waiting(stage, "deleteNode", "count", "deleteNode")
    stage.pass_time(90)
    stage.script_replies("I give up.")
    machine.time_out()
    assert machine.run() == "Finished"
    errors = result_errors(stage)
    assert [error is None for error in errors] == [False, True, False]
    assert all("did not answer in time" in error for error in errors if error)
    assert stage.event_types()[-1] == "done"
    assert len(stage.tool_requests()) == 1, "what stood behind the unanswered call is not asked for"
    invariants.check_invariants(stage)


def test_the_model_may_call_again_after_an_unanswered_request(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(90)
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="m")), "Done.")
    machine.time_out()
    machine.run()
    stage.answer_request(OK)
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_an_answer_after_the_request_was_given_up_is_refused(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    machine = run_until_waiting(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    stage.pass_time(90)
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="m")))
    machine.time_out()
    machine.run()
    with pytest.raises(NotFound):
        stage.answer_request(OK, request)
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_late_answer_before_the_heartbeat_timeout_counts(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(95)
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_right_before_the_request_is_given_up_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """The timed-out invocation has read the pause; the answer is committed before it gives the request up."""
    stage = staged(unanswered_calls=unanswered)
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.pass_time(90)
    machine.time_out()
    verdict = "error" if unanswered == "fail" else "toolResult"
    stage.faults.interrupt("dynamodb.TransactWriteItems", lambda: stage.answer_request(OK), contains=verdict)
    machine.run()
    assert stage.faults.is_spent
    assert not stage.terminal_events()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert result_errors(stage) == [None, None]
    invariants.check_invariants(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_between_two_reads_of_an_invocation_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """Pause and log are read one after the other, so the pause may be older than the log."""
    stage = staged(unanswered_calls=unanswered)
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    hint = stage.load_pause().build_invocation_hint(stage.resources.settings.bridges_table)
    stage.pass_time(90)
    machine.time_out()
    machine.input = {"hint": hint}
    machine._start_task()
    query = stage.resources.tables.batch_get_items

    def answer_before_read(table: str, keys: list[tuple[str, str]]) -> object:
        items = query(table, keys[:2])
        stage.answer_request(OK)
        return items | query(table, keys[2:])

    stage.resources.__dict__["tables"] = tables = type(stage.resources.tables)(stage.resources.tables._client)
    tables.batch_get_items = answer_before_read  # type: ignore[method-assign,assignment]  # DynamoDB's batches are not snapshots
    machine.step()
    tables.batch_get_items = query  # type: ignore[method-assign]
    machine.run()
    assert not stage.terminal_events()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_messages_written_by_others_are_in_the_next_model_request(staged: MakeStage) -> None:
    """The requesting function finds the deadline over at once; the answer is faster than its commit."""
    stage = staged(unanswered_calls="tell_model")
    stage.add_tools(make_patient_tool("ask_quickly", seconds=0))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_quickly")), "Done.")
    stage.faults.interrupt("dynamodb.TransactWriteItems", lambda: stage.answer_request(OK), contains="did not answer")
    assert stage.run_workflow() == "finished"
    assert result_errors(stage) == [None]
    invariants.check_invariants(stage)


def test_a_long_wait_ends_at_its_own_deadline(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    assert machine.state == "Hold"
    stage.pass_time(86400)
    machine.time_out()
    assert machine.run() == "Finished"
    assert stage.event_types()[-1] == "error"
    invariants.check_invariants(stage)


def test_every_log_entry_says_until_when_the_turn_is_held(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "deleteNode", "ask_the_baker")
    assert stage.entries()[-1].state.held_until == 0
    stage.answer_request(OK)
    assert stage.entries()[-1].state.held_until == int(stage.resources.clock.time() + 86400)
    machine.run()
    stage.answer_request(OK)
    assert stage.entries()[-1].state.held_until == 0


def test_a_heartbeat_timeout_without_a_pause_repeats_the_request(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()], "Hello.")
    machine = StateMachine(stage)
    with pytest.raises(ProcessDied):
        stage.advance_turn(machine.invocation)
    machine.time_out()
    assert machine.run() == "Finished"
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_heartbeat_timeout_during_a_request_leaves_one_answer(stage: Stage) -> None:
    """Its heartbeats were lost, but its work was not."""
    stage.start_turn()
    machine = StateMachine(stage)
    working = machine.invocation

    def time_out() -> None:
        machine.time_out()
        machine.run()

    stage.script_replies([TextDelta(text="Hel"), time_out, *reply_with_text("lo.")], "Hello.")
    stage.advance_turn(working, RecordingConnection())
    assert machine.run() == "Finished"
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_an_invocation_continues_after_one_that_died_among_its_tools(stage: Stage) -> None:
    ran: list[str] = []
    stage.add_tools(make_server_tool("count", lambda: ran.append("ran"), idempotent=True))
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("count"), tool_call_block("deleteNode", nodeId="n"), tool_call_block("count")),
        "Done.",
    )
    stage.faults.kill_process("dynamodb.TransactWriteItems", when="before", contains="toolResult")
    machine = StateMachine(stage)
    machine.run()
    assert ran == ["ran", "ran"], "an idempotent tool may run again"
    stage.answer_request(OK)
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_stream_sends_heartbeats_and_reads_the_log(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start_turn()
    stage.script_replies(
        [
            TextDelta(text="Hel"),
            lambda: stage.pass_time(31),
            lambda: stage.workflow.heartbeat_sent.wait(MAX_THREAD_WAIT_SECONDS),
            *reply_with_text("lo.", after="Hel"),
        ]
    )
    invocation = stage.advance_turn()
    assert stage.workflow.heartbeats == [invocation.token]
    invariants.check_invariants(stage)


def test_many_short_rounds_in_a_row_send_heartbeats(staged: MakeStage) -> None:
    stage = staged(max_repeated_calls=0, max_failed_rounds=0)
    stage.start_turn()
    beats_at: list[int] = []

    def short_round() -> None:
        beats_at.append(len(stage.workflow.heartbeats))
        stage.pass_time(20)

    stage.script_replies(
        *[[short_round, *reply_with_calls(tool_call_block("list_documents"))] for _ in range(9)], "Done."
    )
    machine = StateMachine(stage)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Finished"], "the rounds are done by one invocation"
    assert beats_at == [0, 0, 1, 1, 2, 2, 3, 3, 4], "one for every 40 seconds, where the clock is set to 90"
    invariants.check_invariants(stage)


def test_call_limits_04_a_cancel_aborts_the_request_to_a_silent_provider(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start_turn()
    stage.script_replies(
        [TextDelta(text="Hel"), stage.cancel_turn, lambda: stage.pass_time(0.6), stage.connection.block_until_aborted]
    )
    invocation = stage.advance_turn()
    assert stage.connection.aborted.is_set()
    assert stage.events()[-1] == CancelledEvent()
    assert stage.workflow.outputs[invocation.token]["next"] == "finish"
    invariants.check_invariants(stage)


def test_a_newer_invocation_aborts_the_request_to_a_silent_provider(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start_turn()
    older, newer = stage.make_invocation(), stage.make_invocation()

    def takes_over() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(newer, RecordingConnection())
        stage.pass_time(0.6)

    stage.script_replies([TextDelta(text="Hel"), takes_over, stage.connection.block_until_aborted])
    stage.advance_turn(older)
    assert older.token in stage.workflow.open_tokens
    invariants.check_invariants(stage)


def test_waiting_text_is_written_although_no_more_follows(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start_turn()
    is_written = threading.Event()

    def until_notified() -> None:
        stage.faults.interrupt("dynamodb.PutItem", is_written.set, contains='"lo')
        stage.pass_time(0.3)
        assert is_written.wait(MAX_THREAD_WAIT_SECONDS)

    stage.script_replies(
        [
            TextDelta(text="Hel"),
            TextDelta(text="lo"),
            until_notified,
            ModelResponse(blocks=(), stop=FinishReason.END, tokens=NONE),
        ]
    )
    stage.advance_turn()
    assert [event.text for event in stage.events() if isinstance(event, TextEvent)] == ["Hel", "lo"]


def test_an_error_in_the_background_thread_fails_the_function(staged: MakeStage) -> None:
    """The error is raised in the main thread, so that the workflow retries the state."""
    stage = staged(flush_ms=10)
    stage.start_turn()
    stage.faults.fail_call("dynamodb.GetItem", "AccessDeniedException", contains="e#")
    stage.script_replies([TextDelta(text="Hel"), lambda: stage.pass_time(0.6), stage.connection.block_until_aborted])
    with pytest.raises(Exception, match="AccessDenied"):
        stage.advance_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)
