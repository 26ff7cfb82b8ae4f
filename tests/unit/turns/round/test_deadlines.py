"""Time (design §4): the heartbeat is an alarm clock and decides nothing; whoever it wakes looks and decides."""

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


def results(stage: Stage) -> list[str | None]:
    """What the model last read of its calls: the errors, None for what went well."""
    return [block.error for block in stage.results_sent_to_model()]


def test_waiting_begins_with_a_heartbeat_that_winds_the_clock_up(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    assert machine.state == "RunRound"
    assert stage.workflow.heartbeats[-1] == machine.invocation.token


def test_a_deadline_is_90_seconds_from_the_open_request(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.pass_time(80)
    stage.answer_request(OK)
    asked = stage.load_pause().requested_call
    assert asked is not None
    assert asked.deadline == stage.resources.clock.time() + 90


def test_an_alarm_before_the_deadline_waits_on_for_what_is_left(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(60)
    machine.time_out()
    machine.run()
    assert machine.state == "Hold"
    assert machine.input["seconds"] == 30
    assert stage.load_pause().token == machine.invocation.token
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_an_alarm_that_finds_the_answer_goes_on(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    machine.time_out()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_nobody_answers_and_the_turn_ends_with_an_error(stage: Stage) -> None:
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


def test_nobody_answers_and_the_model_is_told_where_that_is_the_setting(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    stage.add_tools(make_server_tool("count", dict, idempotent=True))
    machine = run_until_waiting(stage, "deleteNode", "count", "deleteNode")
    stage.pass_time(90)
    stage.script_replies("I give up.")
    machine.time_out()
    assert machine.run() == "Finished"
    told = results(stage)
    assert [error is None for error in told] == [False, True, False]
    assert all("did not answer in time" in error for error in told if error)
    assert stage.event_types()[-1] == "done"
    assert len(stage.tool_requests()) == 1, "what stood behind the unanswered call is not asked for"
    invariants.check_invariants(stage)


def test_a_model_that_is_told_may_try_again(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(90)
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="m")), "Done.")
    machine.time_out()
    machine.run()
    stage.answer_request(OK)
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_an_answer_after_its_time_was_declared_over_is_refused(staged: MakeStage) -> None:
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


def test_an_answer_that_is_late_but_faster_than_the_alarm_counts(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.pass_time(95)
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_that_beats_the_verdict_by_a_hair_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """The alarm has read the pause; the answer is committed before it can declare the time over."""
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
    assert results(stage) == [None, None]
    invariants.check_invariants(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_between_the_two_looks_of_an_alarm_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """Pause and log are read one after the other; a pause older than the log must not be judged by it."""
    stage = staged(unanswered_calls=unanswered)
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    hint = stage.load_pause().hint
    stage.pass_time(90)
    machine.time_out()
    machine.input = {"hint": hint}
    machine._start_task()
    query = stage.resources.tables.batch_get_items

    def torn(table: str, keys: list[tuple[str, str]]) -> object:
        found = query(table, keys[:2])
        stage.answer_request(OK)
        return found | query(table, keys[2:])

    stage.resources.__dict__["tables"] = tables = type(stage.resources.tables)(stage.resources.tables._client)
    tables.batch_get_items = torn  # type: ignore[method-assign,assignment]  # DynamoDB's batches are not snapshots
    machine.step()
    tables.batch_get_items = query  # type: ignore[method-assign]
    machine.run()
    assert not stage.terminal_events()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_what_somebody_else_wrote_meanwhile_is_read_before_the_next_request(staged: MakeStage) -> None:
    """The function that asked finds the time over at once, and the answer faster than its verdict."""
    stage = staged(unanswered_calls="tell_model")
    stage.add_tools(make_patient_tool("ask_quickly", seconds=0))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("ask_quickly")), "Done.")
    stage.faults.interrupt("dynamodb.TransactWriteItems", lambda: stage.answer_request(OK), contains="did not answer")
    assert stage.run_workflow() == "finished"
    assert results(stage) == [None]
    invariants.check_invariants(stage)


def test_a_long_wait_is_over_when_its_own_time_is(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    assert machine.state == "Hold"
    stage.pass_time(86400)
    machine.time_out()
    assert machine.run() == "Finished"
    assert stage.event_types()[-1] == "error"
    invariants.check_invariants(stage)


def test_a_reader_is_told_in_every_entry_until_when_a_turn_is_held(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "deleteNode", "ask_the_baker")
    assert stage.entries()[-1].state.held_until == 0
    stage.answer_request(OK)
    assert stage.entries()[-1].state.held_until == int(stage.resources.clock.time() + 86400)
    machine.run()
    stage.answer_request(OK)
    assert stage.entries()[-1].state.held_until == 0


def test_an_alarm_without_a_pause_means_that_the_function_died(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()], "Hello.")
    machine = StateMachine(stage)
    with pytest.raises(ProcessDied):
        stage.advance_turn(machine.invocation)
    machine.time_out()
    assert machine.run() == "Finished"
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_an_alarm_while_a_function_still_works_makes_one_answer(stage: Stage) -> None:
    """Its heartbeats were lost, not its work."""
    stage.start_turn()
    machine = StateMachine(stage)
    working = machine.invocation

    def alarm() -> None:
        machine.time_out()
        machine.run()

    stage.script_replies([TextDelta(text="Hel"), alarm, *reply_with_text("lo.")], "Hello.")
    stage.advance_turn(working, RecordingConnection())
    assert machine.run() == "Finished"
    assert invariants.text_by_round(stage.events()) == {1: "Hello."}
    invariants.check_invariants(stage)


def test_a_function_that_died_in_the_middle_of_its_tools_is_followed_by_one_that_goes_on(stage: Stage) -> None:
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


def test_a_handler_that_works_beats_and_looks_at_the_log(staged: MakeStage) -> None:
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


def test_many_short_rounds_in_a_row_keep_the_clock_from_ringing(stage: Stage) -> None:
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


def test_a_cancel_hangs_up_on_a_silent_provider(staged: MakeStage) -> None:
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


def test_somebody_newer_hangs_up_on_a_silent_provider_too(staged: MakeStage) -> None:
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


def test_text_that_waits_is_told_though_no_more_comes(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start_turn()
    told = threading.Event()

    def until_told() -> None:
        stage.faults.interrupt("dynamodb.PutItem", told.set, contains='"lo')
        stage.pass_time(0.3)
        assert told.wait(MAX_THREAD_WAIT_SECONDS)

    stage.script_replies(
        [
            TextDelta(text="Hel"),
            TextDelta(text="lo"),
            until_told,
            ModelResponse(blocks=(), stop=FinishReason.END, tokens=NONE),
        ]
    )
    stage.advance_turn()
    assert [event.text for event in stage.events() if isinstance(event, TextEvent)] == ["Hel", "lo"]


def test_a_watcher_that_fails_fails_the_function(staged: MakeStage) -> None:
    """An error in the background is not swallowed: the state is tried again."""
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
