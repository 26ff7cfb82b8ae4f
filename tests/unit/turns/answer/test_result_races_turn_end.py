"""An answer that is beaten by its own twin, which let the turn go on to its very end."""

import pytest

from fermata.domain.errors import Conflict, NotFound
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

COMMIT = "dynamodb.TransactWriteItems"


@pytest.fixture
def asked(stage: Stage) -> Stage:
    """A turn that waits for one answer and says its last word after it."""
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    assert stage.run_workflow() == "waiting"
    return stage


def to_the_end(stage: Stage) -> None:
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"


def test_the_same_answer_is_fine(asked: Stage) -> None:
    asked.faults.interrupt(COMMIT, lambda: to_the_end(asked))
    asked.answer_request(OK)
    assert asked.event_types().count("toolResult") == 1


def test_a_different_answer_is_a_conflict(asked: Stage) -> None:
    asked.faults.interrupt(COMMIT, lambda: to_the_end(asked))
    with pytest.raises(Conflict):
        asked.answer_request({"ok": False, "error": "no"})
    assert asked.event_types().count("toolResult") == 1


def test_an_answer_beaten_by_a_cancel_is_not_found(asked: Stage) -> None:
    asked.faults.interrupt(COMMIT, lambda: asked.cancel_turn())
    with pytest.raises(NotFound):
        asked.answer_request(OK)
    assert asked.event_types()[-1] == "cancelled"
