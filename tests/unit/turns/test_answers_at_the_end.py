"""An answer that is beaten by its own twin, which let the turn go on to its very end."""

import pytest

from fermata.words.errors import Conflict, NotFound
from tests.unit.turns.stage import OK, Stage, call, calls

COMMIT = "dynamodb.TransactWriteItems"


@pytest.fixture
def asked(stage: Stage) -> Stage:
    """A turn that waits for one answer and says its last word after it."""
    stage.start()
    stage.says(calls(call("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    assert stage.run() == "waiting"
    return stage


def to_the_end(stage: Stage) -> None:
    stage.answer(OK)
    assert stage.run() == "finished"


def test_the_same_answer_is_fine(asked: Stage) -> None:
    asked.seam.meanwhile(COMMIT, lambda: to_the_end(asked))
    asked.answer(OK)
    assert asked.types().count("toolResult") == 1


def test_a_different_answer_is_a_conflict(asked: Stage) -> None:
    asked.seam.meanwhile(COMMIT, lambda: to_the_end(asked))
    with pytest.raises(Conflict):
        asked.answer({"ok": False, "error": "no"})
    assert asked.types().count("toolResult") == 1


def test_an_answer_beaten_by_a_cancel_is_not_found(asked: Stage) -> None:
    asked.seam.meanwhile(COMMIT, lambda: asked.cancel())
    with pytest.raises(NotFound):
        asked.answer(OK)
    assert asked.types()[-1] == "cancelled"
