"""Time (design §4): the heartbeat is an alarm clock and decides nothing; whoever it wakes looks and decides."""

import threading

import pytest

from fermata.words.errors import NotFound
from fermata.words.events import Cancelled, Text, TurnError
from fermata.words.model import Reply, Stop, TextDelta, Tokens
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import asking, patient_tool, server_tool
from tests.unit.turns.stage import OK, PATIENCE, HandLine, Stage, call, calls, says

NONE = Tokens()


def results(stage: Stage) -> list[str | None]:
    """What the model last read of its calls: the errors, None for what went well."""
    return [block.error for block in stage.read_by_the_model()]


def test_waiting_begins_with_a_heartbeat_that_winds_the_clock_up(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    assert machine.state == "RunRound"
    assert stage.workflow.beats[-1] == machine.wake.token


def test_a_deadline_is_90_seconds_from_the_open_request(stage: Stage) -> None:
    asking(stage, "deleteNode", "deleteNode")
    stage.pass_time(80)
    stage.answer(OK)
    asked = stage.pause().open_request
    assert asked is not None
    assert asked.deadline == stage.desk.clock.time() + 90


def test_an_alarm_before_the_deadline_waits_on_for_what_is_left(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    stage.pass_time(60)
    machine.ring()
    machine.run()
    assert machine.state == "Hold"
    assert machine.input["seconds"] == 30
    assert stage.pause().token == machine.wake.token
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_an_alarm_that_finds_the_answer_goes_on(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    machine.ring()
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_nobody_answers_and_the_turn_ends_with_an_error(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "deleteNode")
    stage.pass_time(90)
    machine.ring()
    assert machine.run() == "Finished"
    [end] = stage.terminals()
    assert isinstance(end, TurnError)
    assert (end.code, end.retryable) == ("no_answer", True)
    assert "deleteNode" in end.message
    assert stage.types()[-4:] == ["toolResult", "toolResult", "usage", "error"]
    truth.check(stage)


def test_nobody_answers_and_the_model_is_told_where_that_is_the_setting(staged: MakeStage) -> None:
    stage = staged(unanswered="tell_model")
    stage.learn(server_tool("count", dict, idempotent=True))
    machine = asking(stage, "deleteNode", "count", "deleteNode")
    stage.pass_time(90)
    stage.says("I give up.")
    machine.ring()
    assert machine.run() == "Finished"
    told = results(stage)
    assert [error is None for error in told] == [False, True, False]
    assert all("did not answer in time" in error for error in told if error)
    assert stage.types()[-1] == "done"
    assert len(stage.requests()) == 1, "what stood behind the unanswered call is not asked for"
    truth.check(stage)


def test_a_model_that_is_told_may_try_again(staged: MakeStage) -> None:
    stage = staged(unanswered="tell_model")
    machine = asking(stage, "deleteNode")
    stage.pass_time(90)
    stage.says(calls(call("deleteNode", nodeId="m")), "Done.")
    machine.ring()
    machine.run()
    stage.answer(OK)
    assert machine.run() == "Finished"
    truth.check(stage)


def test_an_answer_after_its_time_was_declared_over_is_refused(staged: MakeStage) -> None:
    stage = staged(unanswered="tell_model")
    machine = asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.pass_time(90)
    stage.says(calls(call("deleteNode", nodeId="m")))
    machine.ring()
    machine.run()
    with pytest.raises(NotFound):
        stage.answer(OK, request)
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_an_answer_that_is_late_but_faster_than_the_alarm_counts(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    stage.pass_time(95)
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_that_beats_the_verdict_by_a_hair_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """The alarm has read the pause; the answer is committed before it can declare the time over."""
    stage = staged(unanswered=unanswered)
    machine = asking(stage, "deleteNode", "deleteNode")
    stage.pass_time(90)
    machine.ring()
    verdict = "error" if unanswered == "fail" else "toolResult"
    stage.seam.meanwhile("dynamodb.TransactWriteItems", lambda: stage.answer(OK), contains=verdict)
    machine.run()
    assert stage.seam.is_spent
    assert not stage.terminals()
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert results(stage) == [None, None]
    truth.check(stage)


@pytest.mark.parametrize("unanswered", ["fail", "tell_model"])
def test_an_answer_between_the_two_looks_of_an_alarm_is_not_lost(staged: MakeStage, unanswered: str) -> None:
    """Pause and log are read one after the other; a pause older than the log must not be judged by it."""
    stage = staged(unanswered=unanswered)
    machine = asking(stage, "deleteNode", "deleteNode")
    hint = stage.pause().hint
    stage.pass_time(90)
    machine.ring()
    machine.input = {"hint": hint}
    machine._task()
    query = stage.desk.tables.batch_get

    def torn(table: str, keys: list[tuple[str, str]]) -> object:
        found = query(table, keys[:2])
        stage.answer(OK)
        return found | query(table, keys[2:])

    stage.desk.__dict__["tables"] = tables = type(stage.desk.tables)(stage.desk.tables._client)
    tables.batch_get = torn  # type: ignore[method-assign,assignment]  # DynamoDB's batches are not snapshots
    machine.step()
    tables.batch_get = query  # type: ignore[method-assign]
    machine.run()
    assert not stage.terminals()
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_what_somebody_else_wrote_meanwhile_is_read_before_the_next_request(staged: MakeStage) -> None:
    """The function that asked finds the time over at once, and the answer faster than its verdict."""
    stage = staged(unanswered="tell_model")
    stage.learn(patient_tool("ask_quickly", seconds=0))
    stage.start()
    stage.says(calls(call("ask_quickly")), "Done.")
    stage.seam.meanwhile("dynamodb.TransactWriteItems", lambda: stage.answer(OK), contains="did not answer")
    assert stage.run() == "finished"
    assert results(stage) == [None]
    truth.check(stage)


def test_a_long_wait_is_over_when_its_own_time_is(stage: Stage) -> None:
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker")
    assert machine.state == "Hold"
    stage.pass_time(86400)
    machine.ring()
    assert machine.run() == "Finished"
    assert stage.types()[-1] == "error"
    truth.check(stage)


def test_a_reader_is_told_in_every_entry_until_when_a_turn_is_held(stage: Stage) -> None:
    stage.learn(patient_tool())
    machine = asking(stage, "deleteNode", "ask_the_baker")
    assert stage.entries()[-1].standing.until == 0
    stage.answer(OK)
    assert stage.entries()[-1].standing.until == int(stage.desk.clock.time() + 86400)
    machine.run()
    stage.answer(OK)
    assert stage.entries()[-1].standing.until == 0


def test_an_alarm_without_a_pause_means_that_the_function_died(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()], "Hello.")
    machine = Machine(stage)
    with pytest.raises(Death):
        stage.advance(machine.wake)
    machine.ring()
    assert machine.run() == "Finished"
    assert truth.shown(stage.events()) == {1: "Hello."}
    truth.check(stage)


def test_an_alarm_while_a_function_still_works_makes_one_answer(stage: Stage) -> None:
    """Its heartbeats were lost, not its work."""
    stage.start()
    machine = Machine(stage)
    working = machine.wake

    def alarm() -> None:
        machine.ring()
        machine.run()

    stage.says([TextDelta(text="Hel"), alarm, *says("lo.")], "Hello.")
    stage.advance(working, HandLine())
    assert machine.run() == "Finished"
    assert truth.shown(stage.events()) == {1: "Hello."}
    truth.check(stage)


def test_a_function_that_died_in_the_middle_of_its_tools_is_followed_by_one_that_goes_on(stage: Stage) -> None:
    ran: list[str] = []
    stage.learn(server_tool("count", lambda: ran.append("ran"), idempotent=True))
    stage.start()
    stage.says(calls(call("count"), call("deleteNode", nodeId="n"), call("count")), "Done.")
    stage.seam.die("dynamodb.TransactWriteItems", when="before", contains="toolResult")
    machine = Machine(stage)
    machine.run()
    assert ran == ["ran", "ran"], "an idempotent tool may run again"
    stage.answer(OK)
    assert machine.run() == "Finished"
    truth.check(stage)


def test_a_handler_that_works_beats_and_looks_at_the_log(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start()
    stage.says(
        [
            TextDelta(text="Hel"),
            lambda: stage.pass_time(31),
            lambda: stage.workflow.beaten.wait(PATIENCE),
            *says("lo.", after="Hel"),
        ]
    )
    wake = stage.advance()
    assert stage.workflow.beats == [wake.token]
    truth.check(stage)


def test_many_short_rounds_in_a_row_keep_the_clock_from_ringing(stage: Stage) -> None:
    stage.start()
    beats_at: list[int] = []

    def short_round() -> None:
        beats_at.append(len(stage.workflow.beats))
        stage.pass_time(20)

    stage.says(*[[short_round, *calls(call("list_documents"))] for _ in range(9)], "Done.")
    machine = Machine(stage)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "Finished"], "the rounds are done by one invocation"
    assert beats_at == [0, 0, 1, 1, 2, 2, 3, 3, 4], "one for every 40 seconds, where the clock is set to 90"
    truth.check(stage)


def test_a_cancel_hangs_up_on_a_silent_provider(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start()
    stage.says([TextDelta(text="Hel"), stage.cancel, lambda: stage.pass_time(0.6), stage.line.stay_until_hung_up])
    wake = stage.advance()
    assert stage.line.hung_up.is_set()
    assert stage.events()[-1] == Cancelled()
    assert stage.workflow.outputs[wake.token]["next"] == "finish"
    truth.check(stage)


def test_somebody_newer_hangs_up_on_a_silent_provider_too(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start()
    older, newer = stage.wake(), stage.wake()

    def takes_over() -> None:
        stage.says("Hello.")
        stage.advance(newer, HandLine())
        stage.pass_time(0.6)

    stage.says([TextDelta(text="Hel"), takes_over, stage.line.stay_until_hung_up])
    stage.advance(older)
    assert older.token in stage.workflow.open
    truth.check(stage)


def test_text_that_waits_is_told_though_no_more_comes(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    stage.start()
    told = threading.Event()

    def until_told() -> None:
        stage.seam.meanwhile("dynamodb.PutItem", told.set, contains='"lo')
        stage.pass_time(0.3)
        assert told.wait(PATIENCE)

    stage.says([TextDelta(text="Hel"), TextDelta(text="lo"), until_told, Reply(blocks=(), stop=Stop.END, tokens=NONE)])
    stage.advance()
    assert [event.text for event in stage.events() if isinstance(event, Text)] == ["Hel", "lo"]


def test_a_watcher_that_fails_fails_the_function(staged: MakeStage) -> None:
    """An error in the background is not swallowed: the state is tried again."""
    stage = staged(flush_ms=10)
    stage.start()
    stage.seam.refuse("dynamodb.GetItem", "AccessDeniedException", contains="e#")
    stage.says([TextDelta(text="Hel"), lambda: stage.pass_time(0.6), stage.line.stay_until_hung_up])
    with pytest.raises(Exception, match="AccessDenied"):
        stage.advance()
    stage.says("Hello.")
    stage.run()
    assert truth.shown(stage.events()) == {1: "Hello."}
    truth.check(stage)
