"""Results that lose a race against the same result, which has let the turn run to its end meanwhile."""

import pytest

from fermata.domain.errors import Conflict, NotFound
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

COMMIT = "dynamodb.TransactWriteItems"


@pytest.fixture
def waiting_stage(stage: Stage) -> Stage:
    """A turn that waits for one answer and ends after it."""
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    assert stage.run_workflow() == "waiting"
    return stage


def answer_and_finish(stage: Stage) -> None:
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"


def test_the_same_answer_is_accepted_after_the_turn_has_ended(waiting_stage: Stage) -> None:
    waiting_stage.faults.interrupt(COMMIT, lambda: answer_and_finish(waiting_stage))
    waiting_stage.answer_request(OK)
    assert waiting_stage.event_types().count("toolResult") == 1


def test_a_different_answer_conflicts_after_the_turn_has_ended(waiting_stage: Stage) -> None:
    waiting_stage.faults.interrupt(COMMIT, lambda: answer_and_finish(waiting_stage))
    with pytest.raises(Conflict):
        waiting_stage.answer_request({"ok": False, "error": "no"})
    assert waiting_stage.event_types().count("toolResult") == 1


def test_an_answer_behind_a_cancel_is_not_found(waiting_stage: Stage) -> None:
    waiting_stage.faults.interrupt(COMMIT, lambda: waiting_stage.cancel_turn())
    with pytest.raises(NotFound):
        waiting_stage.answer_request(OK)
    assert waiting_stage.event_types()[-1] == "cancelled"
