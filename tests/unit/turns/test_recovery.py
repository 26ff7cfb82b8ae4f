"""Recovery (design §4): a turn whose execution is gone goes on in the next one, or ends with an error."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.turns import recovering
from fermata.turns.recovering import sweep
from fermata.words.errors import Conflict
from fermata.words.events import RoundStarted, TurnError
from fermata.words.model import TextDelta
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import asking, patient_tool
from tests.unit.turns.stage import OK, Stage

GONE = ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "no"}}, "StartExecution")
RESTARTED = ("FAILED", "States.ServiceRestart")


def set_state(stage: Stage, status: str, error: str = "", n: int = 1) -> None:
    stage.workflow.states[stage.turn.id, n] = (status, error)


def test_a_start_that_failed_is_made_up_for_by_the_sweep(stage: Stage) -> None:
    stage.workflow.troubles.append(GONE)
    stage.start()
    assert not stage.workflow.started
    assert sweep(stage.desk) == 0, "a turn is given ten seconds to start by itself"
    stage.pass_time(11)
    assert sweep(stage.desk) == 1
    assert stage.workflow.started == [(stage.turn.id, 1)]
    stage.says("Hello.")
    stage.run()
    truth.check(stage)


def test_a_turn_that_started_less_than_ten_seconds_ago_is_left_alone(stage: Stage) -> None:
    stage.workflow.troubles.append(GONE)
    stage.start()
    stage.recover()
    assert not stage.workflow.started


@pytest.mark.parametrize("status", ["RUNNING", "MISSING", "ABORTED", "FAILED", "TIMED_OUT", "SUCCEEDED", "RESTARTED"])
def test_every_status_of_an_execution_has_its_consequence(stage: Stage, status: str) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()])
    with pytest.raises(Death):
        stage.advance()
    stage.pass_time(11)
    set_state(stage, *(RESTARTED if status == "RESTARTED" else (status, "")))
    stage.recover()
    started = [n for _, n in stage.workflow.started[1:]]
    ends = [event.code for event in stage.terminals() if isinstance(event, TurnError)]
    assert (started, ends) == {
        "RUNNING": ([], []),
        "MISSING": ([1], []),
        "ABORTED": ([], ["aborted"]),
        "FAILED": ([], ["broken"]),
        "TIMED_OUT": ([], ["broken"]),
        "SUCCEEDED": ([2], []),
        "RESTARTED": ([2], []),
    }[status]
    if ends:
        truth.check(stage)


def test_a_turn_goes_on_in_its_next_execution_and_shows_its_text_once(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()])
    with pytest.raises(Death):
        stage.advance()
    set_state(stage, *RESTARTED)
    stage.recover()
    stage.says("Hello.")
    assert Machine(stage, n=2).run() == "Finished"
    assert stage.turn_row()["n"] == 2
    truth.check(stage)


def test_only_the_turns_current_execution_is_acted_on(stage: Stage) -> None:
    stage.start()
    set_state(stage, *RESTARTED)
    stage.recover(n=1)
    assert stage.turn_row()["n"] == 2
    stage.recover(n=1)
    stage.recover(n=1, has_failed=True)
    assert stage.turn_row()["n"] == 2
    assert not stage.terminals()


def test_two_who_recover_at_once_start_one_execution(stage: Stage) -> None:
    stage.start()
    set_state(stage, *RESTARTED)
    stage.seam.meanwhile("dynamodb.UpdateItem", stage.recover)
    stage.recover()
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]
    assert stage.turn_row()["n"] == 2


def test_an_execution_that_was_decided_on_but_not_started_is_started_by_the_next_sweep(stage: Stage) -> None:
    stage.start()
    set_state(stage, *RESTARTED)
    stage.workflow.troubles.append(GONE)
    with pytest.raises(ClientError):
        stage.recover()
    stage.pass_time(60)
    sweep(stage.desk)
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]


def test_a_turn_is_not_continued_without_end(stage: Stage) -> None:
    stage.start()
    for n in range(1, stage.desk.settings.continuations + 1):
        set_state(stage, *RESTARTED, n=n)
        stage.recover()
    assert stage.turn_row()["n"] == stage.desk.settings.continuations
    assert [event.type for event in stage.terminals()] == ["error"]
    truth.check(stage)


def test_what_failed_for_good_ends_with_an_error_and_frees_the_conversation(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), ValueError("a bug")], [TextDelta(text="Hell"), ValueError("a bug")])
    machine = Machine(stage)
    assert machine.run() == "Failed"
    assert stage.types()[-1] == "error"
    truth.check(stage)


def test_a_paused_turn_whose_execution_was_stopped_ends(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    set_state(stage, "ABORTED")
    stage.recover(n=1)
    assert stage.types()[-3:] == ["toolResult", "usage", "error"]
    assert machine.wake.token in stage.workflow.outputs
    truth.check(stage)


def test_a_paused_turn_goes_on_in_its_next_execution_and_takes_the_answer_there(stage: Stage) -> None:
    asking(stage, "deleteNode")
    set_state(stage, *RESTARTED)
    stage.recover()
    machine = Machine(stage, n=2)
    assert machine.run() == "Hold", "what is left of the 90 seconds is waited for exactly"
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"
    assert len(stage.requests()) == 1
    truth.check(stage)


def test_an_ended_turn_is_left_alone(stage: Stage) -> None:
    stage.start()
    stage.cancel()
    before = stage.entries()
    set_state(stage, "FAILED")
    stage.recover(has_failed=True)
    assert stage.entries() == before


def test_a_turn_row_without_a_log_is_an_error_and_never_a_fresh_start(stage: Stage) -> None:
    stage.start()
    stage.desk.tables._client.delete_item(
        TableName=stage.desk.settings.bridges_table,
        Key={"pk": {"S": stage.turn.pk}, "sk": {"S": "e#0000000001"}},
    )
    with pytest.raises(RuntimeError, match="no log"):
        stage.advance()
    stage.recover(has_failed=True)
    assert not stage.entries()
    assert not stage.driver.asks


def test_the_sweep_goes_on_after_a_turn_it_cannot_recover(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        stage.new_conversation()
        stage.start()
    stage.pass_time(60)
    asked: list[str] = []

    def state(turn: str, n: int) -> tuple[str, str]:
        asked.append(turn)
        if len(asked) == 2:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")
        return "RUNNING", ""

    monkeypatch.setattr(stage.workflow, "state", state)
    assert sweep(stage.desk) == 4
    assert len(set(asked)) == 4
    assert "turn.recovery_failed" in caplog.text


def test_the_sweep_sees_no_ended_turn(stage: Stage) -> None:
    stage.start()
    stage.cancel()
    stage.pass_time(60)
    assert sweep(stage.desk) == 0


def test_a_wake_up_lost_with_its_answerer_is_sent_again_by_the_sweep(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is stored, its sender died before SendTaskSuccess, and Hold would wait for a day."""
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker")
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "go_on", dies)
        with pytest.raises(Death):
            stage.answer(OK)
    assert machine.waits
    stage.pass_time(60)
    sweep(stage.desk)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_the_sweep_wakes_nobody_who_still_waits_or_works(stage: Stage) -> None:
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker")
    stage.pass_time(60)
    sent = list(stage.workflow.sent)
    sweep(stage.desk)
    assert machine.waits
    assert stage.workflow.sent == sent


def dies(*_given: Any, **_how: Any) -> bool:
    raise Death


def test_a_silent_turn_is_seen_to_by_the_next_prompt(stage: Stage) -> None:
    stage.workflow.troubles.append(GONE)
    first = stage.start()
    stage.pass_time(11)
    with pytest.raises(Conflict):
        stage.start("And now?")
    assert stage.workflow.started == [(first.id, 1)]


def test_a_silent_turn_whose_execution_failed_gives_way_to_the_next_prompt(stage: Stage) -> None:
    first = stage.start()
    set_state(stage, "FAILED")
    stage.pass_time(11)
    second = stage.start("And now?")
    assert second.id != first.id
    assert stage.claim() == second.id


def test_a_prompt_is_not_the_victim_of_a_recovery_that_fails(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(_turn: str, _n: int) -> tuple[str, str]:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")

    stage.start()
    monkeypatch.setattr(stage.workflow, "state", throttled)
    stage.pass_time(11)
    with pytest.raises(Conflict) as refused:
        stage.start("And now?")
    assert refused.value.retry_after


def test_recovery_leaves_a_turn_that_was_never_there_alone(stage: Stage) -> None:
    recovering.recover(stage.desk, "bakery", "no-such-turn")
    assert not stage.workflow.started


def test_a_function_that_died_without_a_pause_is_tried_once_more_and_then_the_turn_ends(stage: Stage) -> None:
    """The alarm clock rings because nobody sends heartbeats any more."""
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()], [TextDelta(text="Hell"), Death()])
    machine = Machine(stage)
    for _ in range(2):
        with pytest.raises(Death):
            stage.advance(machine.wake)
        machine.ring()
    assert machine.run() == "Finished"
    assert [event.round for event in stage.events() if isinstance(event, RoundStarted)] == [1, 1]
    assert stage.types().count("roundRetracted") == 1
    assert stage.types()[-1] == "error"
    truth.check(stage)
