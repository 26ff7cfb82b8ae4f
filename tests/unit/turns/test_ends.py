"""Ends (design §4): done, error or cancelled, exactly one, and all that becomes true with it."""

from typing import Any

import pytest

from fermata.conversations.healing import INTERRUPTED
from fermata.turns import ending
from fermata.words.blocks import TextBlock
from fermata.words.caller import Caller
from fermata.words.errors import NotFound, Unavailable
from fermata.words.events import Cancelled, Done, ToolResult
from fermata.words.model import TextDelta
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import asking, patient_tool
from tests.unit.turns.stage import OK, HandLine, Stage, call, calls, failure, says

TRANSACT = "dynamodb.TransactWriteItems"


def cancel_before_it_ran(stage: Stage) -> None:
    stage.start()
    stage.cancel()
    stage.run()


def cancel_before_the_first_text(stage: Stage) -> None:
    stage.start()
    stage.says([stage.cancel, *says("Hello.")])
    stage.run()


def cancel_in_the_middle_of_text(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), stage.cancel, *says("lo.")])
    stage.run()


def cancel_while_paused(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "deleteNode")
    stage.cancel()
    assert machine.run() == "Finished"


def cancel_while_held(stage: Stage) -> None:
    stage.learn(patient_tool())
    machine = asking(stage, "ask_the_baker", "deleteNode")
    assert machine.state == "Hold"
    stage.cancel()
    assert machine.run() == "Finished"


def cancel_between_two_calls(stage: Stage) -> None:
    machine = asking(stage, "deleteNode", "deleteNode")
    stage.answer(OK)
    stage.cancel()
    assert machine.run() == "Finished"


def cancel_between_two_rounds(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    stage.answer(OK)
    stage.cancel()
    assert machine.run() == "Finished"


def cancel_while_nobody_works(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()])
    machine = Machine(stage)
    with pytest.raises(Death):
        stage.advance(machine.wake)
    stage.cancel()
    machine.ring()
    assert machine.run() == "Finished"


@pytest.mark.parametrize(
    "moment",
    [
        cancel_before_it_ran,
        cancel_before_the_first_text,
        cancel_in_the_middle_of_text,
        cancel_while_paused,
        cancel_while_held,
        cancel_between_two_calls,
        cancel_between_two_rounds,
        cancel_while_nobody_works,
    ],
)
def test_a_cancel_ends_the_turn_whenever_it_comes(stage: Stage, moment: Any) -> None:
    moment(stage)
    assert stage.events()[-1] == Cancelled()
    assert stage.turn_row()["state"] == "cancelled"
    assert not stage.driver.scripts or moment is cancel_before_it_ran
    truth.check(stage)


def test_what_was_said_until_a_cancel_is_kept(stage: Stage) -> None:
    cancel_in_the_middle_of_text(stage)
    assert stage.messages()[-1].content == (TextBlock(text="Hel"),)


def test_calls_that_are_open_at_the_end_are_closed_on_the_stream(stage: Stage) -> None:
    cancel_between_two_calls(stage)
    told = [(event.ok, event.error) for event in stage.events() if isinstance(event, ToolResult)]
    assert told[0] == (True, None)
    assert told[1] == (False, INTERRUPTED)


def test_a_cancel_again_says_how_the_turn_ended(stage: Stage) -> None:
    stage.start()
    assert stage.cancel() == "cancelled"
    before = stage.entries()
    assert stage.cancel() == "cancelled"
    assert stage.entries() == before


def test_a_cancel_after_the_end_says_how_it_ended(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.run()
    assert stage.cancel() == "done"
    stage.start()
    stage.says([failure(retryable=False)])
    stage.run()
    assert stage.cancel() == "error"
    truth.check(stage)


def test_a_cancel_that_loses_to_the_end_says_so(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.seam.meanwhile(TRANSACT, stage.run, contains="cancelled")
    assert stage.cancel() == "done"
    assert stage.events()[-1] == Done()
    truth.check(stage)


def test_an_end_that_loses_to_a_cancel_is_none(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.seam.meanwhile(TRANSACT, stage.cancel, contains="done")
    assert stage.run() == "finished"
    assert stage.events()[-1] == Cancelled()
    assert stage.messages()[-1].content == (TextBlock(text="Hello."),), "what the client has seen is kept"
    truth.check(stage)


def test_two_cancels_at_once_are_one(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.seam.meanwhile(TRANSACT, stage.cancel, contains="cancelled")
    assert stage.cancel() == "cancelled"
    truth.check(stage)


def test_a_cancel_and_an_answer_at_once_agree(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    stage.seam.meanwhile(TRANSACT, lambda: stage.answer(OK), contains="cancelled")
    assert stage.cancel() == "cancelled"
    assert [event.ok for event in stage.events() if isinstance(event, ToolResult)] == [True]
    assert machine.run() == "Finished"
    truth.check(stage)


def test_a_success_that_comes_late_changes_nothing(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), stage.cancel, *calls(call("deleteNode", nodeId="n"), text="lo.")])
    stage.run()
    assert "toolCall" not in stage.types()
    truth.check(stage)


def test_a_repeated_cancel_repeats_the_wake_up(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    stage.workflow.troubles.append(Unavailable("The workflow could not be woken."))
    with pytest.raises(Unavailable):
        stage.cancel()
    assert stage.events()[-1] == Cancelled()
    assert machine.waits
    assert stage.cancel() == "cancelled"
    assert machine.run() == "Finished"
    truth.check(stage)


def test_only_the_turns_user_or_who_manages_turns_may_cancel(stage: Stage) -> None:
    turn = stage.start()

    def of(user: str, tenant: str, *capabilities: str) -> Caller:
        return Caller(tenant=tenant, user=user, capabilities=frozenset(capabilities))

    for stranger in (of("ben", "bakery", "ai.chat"), of("ada", "butcher", "ai.turns.manage")):
        with pytest.raises(NotFound):
            ending.cancel(stage.desk, stranger, turn.id)
    assert ending.cancel(stage.desk, of("ben", "bakery", "ai.turns.manage"), turn.id)["status"] == "cancelled"


def test_a_cancel_of_no_turn_is_not_found(stage: Stage) -> None:
    for name in ("no-such-turn", "", "x" * 5000):
        with pytest.raises(NotFound):
            ending.cancel(stage.desk, stage.caller, name)


def test_an_end_whose_answer_was_lost_is_one_end(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.seam.lose(TRANSACT, contains="done")
    assert stage.run() == "finished"
    truth.check(stage)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_dies_around_the_end_leaves_one(stage: Stage, when: str) -> None:
    stage.start()
    stage.says("Hello.", "Hello.")
    stage.seam.die(TRANSACT, when=when, contains="done")
    assert Machine(stage).run() == "Finished"
    assert stage.events()[-1] == Done()
    truth.check(stage)


def test_a_cancel_is_noticed_by_whoever_works_within_a_breath(stage: Stage) -> None:
    """Here by its next append; test_time.py has the provider that is silent."""
    stage.start()
    said: list[str] = []
    stage.says(
        [
            TextDelta(text="1"),
            stage.cancel,
            TextDelta(text="x" * 1000),
            lambda: said.append("went on"),
            *says("2"),
        ]
    )
    stage.advance(line=HandLine())
    assert said == []
    truth.check(stage)
