"""Lifetime (design §4): everything of a turn expires together, and what has expired counts no more, deleted or not."""

from typing import Any

import pytest

from fermata.aws.dynamo import Item
from fermata.turns.recovering import sweep
from fermata.words.errors import NotFound
from tests.unit.turns.scenes import LARGE, asking, patient_tool
from tests.unit.turns.stage import OK, Stage, call, calls

DAY = 86400


def partition(stage: Stage) -> list[Item]:
    return stage.desk.tables.query(stage.desk.settings.bridges_table, stage.turn.pk)


def test_everything_of_a_turn_expires_at_one_moment(stage: Stage) -> None:
    stage.learn(patient_tool())
    stage.start()
    stage.says(calls(call("ask_the_baker"), call("insertHtml", parentId="r", html=LARGE), text="I ask."), "Done.")
    stage.run()
    stage.pass_time(DAY / 2)
    stage.answer(OK)
    stage.run()
    stage.answer(OK)
    stage.run()
    kinds = {item["sk"][0] for item in partition(stage)}
    assert kinds == {"t", "e", "p"}, "turn row, log and pauses"
    assert {item["ttl"] for item in partition(stage)} == {stage.turn.expires}


def test_a_turn_is_remembered_for_the_longest_hold_and_a_week(stage: Stage) -> None:
    began = int(stage.desk.clock.time())
    assert stage.start().expires == began + (30 + 7) * DAY


def test_the_conversation_and_its_ledger_outlive_the_turn(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.run()
    assert all("ttl" not in row for row in stage.ledger())
    stage.pass_time(38 * DAY)
    assert len(stage.messages()) == 2
    stage.start("And now?")


@pytest.mark.parametrize("deed", ["look", "answer", "cancel", "advance", "recover", "sweep"])
def test_an_expired_turn_is_gone_though_nobody_has_deleted_it(stage: Stage, deed: str) -> None:
    asking(stage, "deleteNode")
    before = partition(stage)
    stage.pass_time(37 * DAY + 1)
    if deed in ("look", "answer", "cancel"):
        deeds: dict[str, Any] = {
            "look": stage.look,
            "answer": lambda: stage.answer(OK),
            "cancel": stage.cancel,
        }
        with pytest.raises(NotFound):
            deeds[deed]()
    elif deed == "advance":
        wake = stage.advance()
        assert stage.workflow.outputs[wake.token]["next"] == "finish"
    elif deed == "recover":
        stage.recover(has_failed=True)
    else:
        sweep(stage.desk)
    assert partition(stage) == before
    assert len(stage.workflow.started) == 1


def test_an_expired_turns_conversation_is_free(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.pass_time(37 * DAY + 1)
    second = stage.start("And now?")
    assert stage.claim() == second.id
    stage.says("Hello.")
    assert stage.run() == "finished"
    positions = [message.position for message in stage.messages()]
    assert positions == sorted(set(positions))
    assert [message.role for message in stage.messages()] == ["user", "assistant", "user", "assistant"]


def test_every_item_and_payload_carries_its_version(stage: Stage) -> None:
    asking(stage, "deleteNode")
    assert {item["v"] for item in partition(stage)} == {1}
    assert {row["v"] for row in stage.ledger()} == {1}
