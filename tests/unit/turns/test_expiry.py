"""Expiry: all rows of a turn expire together, and expired rows count as gone before they are deleted."""

from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.errors import NotFound
from fermata.turns.recover.recover_open_turns import recover_open_turns
from tests.unit.turns.scenarios import LARGE_TEXT, make_patient_tool, run_until_waiting
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

DAY = 86400


def load_turn_items(stage: Stage) -> list[Item]:
    return stage.resources.tables.query_items(stage.resources.settings.bridges_table, stage.turn.pk)


def test_all_rows_of_a_turn_expire_at_once(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(
            tool_call_block("ask_the_baker"),
            tool_call_block("insertHtml", parentId="r", html=LARGE_TEXT),
            text="I ask.",
        ),
        "Done.",
    )
    stage.run_workflow()
    stage.pass_time(DAY / 2)
    stage.answer_request(OK)
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    kinds = {item["sk"][0] for item in load_turn_items(stage)}
    assert kinds == {"t", "e", "p"}, "turn row, log and pauses"
    assert {item["ttl"] for item in load_turn_items(stage)} == {stage.turn.expires}


def test_a_turn_expires_a_week_after_the_longest_hold(stage: Stage) -> None:
    began = int(stage.resources.clock.time())
    assert stage.start_turn().expires == began + (30 + 7) * DAY


def test_conversation_and_ledger_rows_do_not_expire(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert all("ttl" not in row for row in stage.ledger_rows())
    stage.pass_time(38 * DAY)
    assert len(stage.load_messages()) == 2
    stage.start_turn("And now?")


@pytest.mark.parametrize("deed", ["look", "answer", "cancel", "advance", "recover", "sweep"])
def test_an_expired_turn_counts_as_gone_before_it_is_deleted(stage: Stage, deed: str) -> None:
    run_until_waiting(stage, "deleteNode")
    before = load_turn_items(stage)
    stage.pass_time(37 * DAY + 1)
    if deed in ("look", "answer", "cancel"):
        deeds: dict[str, Any] = {
            "look": stage.show_turn,
            "answer": lambda: stage.answer_request(OK),
            "cancel": stage.cancel_turn,
        }
        with pytest.raises(NotFound):
            deeds[deed]()
    elif deed == "advance":
        invocation = stage.advance_turn()
        assert stage.workflow.outputs[invocation.token]["next"] == "finish"
    elif deed == "recover":
        stage.recover_turn(has_execution_failed=True)
    else:
        recover_open_turns(stage.resources)
    assert load_turn_items(stage) == before
    assert len(stage.workflow.started) == 1


def test_the_conversation_of_an_expired_turn_is_free(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.pass_time(37 * DAY + 1)
    second = stage.start_turn("And now?")
    assert stage.claim() == second.id
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"
    positions = [message.position for message in stage.load_messages()]
    assert positions == sorted(set(positions))
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", "user", "assistant"]


def test_every_item_has_a_version(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    assert {item["v"] for item in load_turn_items(stage)} == {1}
    assert {row["v"] for row in stage.ledger_rows()} == {1}
