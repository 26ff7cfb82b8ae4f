"""Answers (design §4): the same one is fine however often it comes; everything else is told what is wrong with it."""

import threading
from typing import Any

import pytest

from fermata.turns import answering
from fermata.turns import pause as pauses
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Forbidden, NotFound, Refusal, Unavailable
from fermata.words.events import ToolRequest, ToolResult
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.scenes import LARGE, asking, patient_tool
from tests.unit.turns.stage import ADA, OK, Stage, call, calls

TRANSACT = "dynamodb.TransactWriteItems"
OTHER: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n2"]}}


def caller(user: str = "ada", tenant: str = "bakery", *capabilities: str) -> Caller:
    return Caller(tenant=tenant, user=user, capabilities=frozenset(capabilities) or ADA.capabilities)


def finish(stage: Stage) -> None:
    stage.says("Done.")
    assert stage.run() == "finished"
    truth.check(stage)


def test_an_answer_is_told_and_kept_and_read_by_the_model(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.answer({"ok": True, "data": {"removed": 3}})
    told = stage.events()[-1]
    assert isinstance(told, ToolResult)
    assert told.ok
    stage.says("Done.")
    stage.run()
    [result] = stage.read_by_the_model()
    assert result.data == {"removed": 3}


def test_a_failure_in_the_browser_is_data_for_the_model(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.answer({"ok": False, "error": "There is no such node."})
    told = stage.events()[-1]
    assert isinstance(told, ToolResult)
    assert (told.ok, told.error) == (False, "There is no such node.")
    finish(stage)


def test_the_same_answer_five_times_is_one_answer(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    for _ in range(5):
        stage.answer(OK, request)
    assert stage.types().count("toolResult") == 1
    finish(stage)
    assert len([message for message in stage.messages() if message.role == "tool"]) == 1


def test_the_same_answer_five_times_at_once_is_one_answer_and_five_200s(stage: Stage) -> None:
    asking(stage, "deleteNode", "deleteNode")
    request = stage.requests()[0].request_id
    barrier, refused = threading.Barrier(5), list[Exception]()

    def post() -> None:
        barrier.wait()
        try:
            stage.answer(OK, request)
        except Refusal as refusal:
            refused.append(refusal)

    posts = [threading.Thread(target=post) for _ in range(5)]
    for one in posts:
        one.start()
    for one in posts:
        one.join()
    assert refused == []
    assert stage.types().count("toolResult") == 1
    stage.answer(OK)
    finish(stage)


def test_the_same_answer_with_its_members_in_another_order_is_the_same(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.answer({"ok": True, "data": {"a": 1, "b": [2]}}, request)
    stage.answer({"data": {"b": [2], "a": 1}, "ok": True}, request)
    assert pauses.answer_hash({"a": 1, "b": 2}) != pauses.answer_hash({"a": 1, "b": 3})


def test_the_snapshot_is_not_compared(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.answer(OK, request, snapshot={"page": 1})
    stage.answer(OK, request, snapshot={"page": 2})
    stage.answer(OK, request)


def test_a_different_answer_is_a_conflict_and_changes_nothing(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.answer(OK, request)
    with pytest.raises(Conflict) as refused:
        stage.answer(OTHER, request)
    assert "different result" in refused.value.error
    finish(stage)


def test_a_different_answer_at_the_same_time_is_a_conflict(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.seam.meanwhile(TRANSACT, lambda: stage.answer(OK, request), contains="n2")
    with pytest.raises(Conflict):
        stage.answer(OTHER, request)
    finish(stage)


def test_what_was_never_asked_for_is_not_found(stage: Stage) -> None:
    asking(stage, "deleteNode")
    for request in ("", "1", "1.0", "1.0.guessed", "9.0.guessed", "x.0.y", "-1.0.y", "999999999.0.y"):
        with pytest.raises(NotFound):
            stage.answer(OK, request or " ")
    assert stage.types()[-1] == "toolRequest"


def test_a_call_behind_the_open_one_cannot_be_answered_before_its_turn(stage: Stage) -> None:
    asking(stage, "deleteNode", "deleteNode")
    first = stage.requests()[0].request_id
    with pytest.raises(NotFound):
        stage.answer(OK, first.replace("1.0.", "1.1.", 1))
    stage.answer(OK, first)
    stage.answer(OK)
    finish(stage)


def test_calls_are_asked_one_at_a_time_in_the_models_order(stage: Stage) -> None:
    stage.start()
    stage.says(calls(*(call("deleteNode", nodeId=f"n{number}") for number in range(3))))
    stage.run()
    for number in range(3):
        told = [event.type for event in stage.events() if isinstance(event, ToolRequest | ToolResult)]
        assert told == ["toolRequest", "toolResult"] * number + ["toolRequest"]
        assert stage.requests()[-1].input == {"nodeId": f"n{number}"}
        stage.answer(OK)
    finish(stage)


def test_an_answer_to_an_earlier_call_repeated_later_is_still_fine(stage: Stage) -> None:
    asking(stage, "deleteNode", "deleteNode")
    first = stage.requests()[0].request_id
    stage.answer(OK, first)
    stage.answer(OK, first)
    stage.answer(OK)
    stage.answer(OK, first)
    finish(stage)


def test_a_repeated_answer_of_an_earlier_round_disturbs_nobody(stage: Stage) -> None:
    machine = asking(stage, "deleteNode")
    first = stage.requests()[0].request_id
    stage.answer(OK, first)
    stage.says(calls(call("deleteNode", nodeId="m")))
    machine.run()
    before = stage.entries()
    stage.answer(OK, first)
    assert stage.entries() == before
    assert machine.waits
    stage.answer(OK)
    stage.says("Done.")
    assert machine.run() == "Finished"


def test_an_answer_repeated_after_the_end_is_fine_and_a_first_one_is_not(stage: Stage) -> None:
    asking(stage, "deleteNode", "deleteNode")
    first = stage.requests()[0].request_id
    stage.answer(OK, first)
    second = stage.requests()[1].request_id
    stage.cancel()
    stage.answer(OK, first)
    with pytest.raises(NotFound):
        stage.answer(OK, second)
    with pytest.raises(Conflict):
        stage.answer(OTHER, first)
    truth.check(stage)


def test_an_answer_that_meets_the_end_is_refused(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.seam.meanwhile(TRANSACT, stage.cancel, contains="toolResult")
    with pytest.raises(NotFound):
        stage.answer(OK)
    truth.check(stage)


def test_a_foreign_user_finds_nothing_to_answer(stage: Stage) -> None:
    asking(stage, "deleteNode")
    with pytest.raises(NotFound):
        stage.answer(OK, caller=caller("ben"))


def test_who_manages_turns_may_answer_for_others(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.answer(OK, caller=caller("ben", "bakery", "ai.turns.manage", "ai.tools.write"))
    finish(stage)


def test_a_foreign_tenant_finds_nothing_to_answer(stage: Stage) -> None:
    asking(stage, "deleteNode")
    with pytest.raises(NotFound):
        stage.answer(OK, caller=caller("ada", "butcher"))


def test_a_write_needs_the_capability_to_write_from_whoever_answers(stage: Stage) -> None:
    asking(stage, "deleteNode")
    with pytest.raises(Forbidden):
        stage.answer(OK, caller=caller("ada", "bakery", "ai.chat"))
    stage.answer(OK, caller=caller("ada", "bakery", "ai.tools.write"))
    finish(stage)


def test_a_read_needs_the_capability_to_chat(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("getNodeHtml", nodeId="n")))
    stage.run()
    with pytest.raises(Forbidden):
        stage.answer(OK, caller=caller("ada", "bakery", "ai.tools.write"))
    stage.answer(OK, caller=caller("ada", "bakery", "ai.chat"))
    finish(stage)


def test_a_turn_started_without_the_capability_never_asks_for_a_write(stage: Stage) -> None:
    stage.caller = caller("ada", "bakery", "ai.chat", "site.read")
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="n")), "I may not.")
    assert stage.run() == "finished"
    assert not stage.requests()
    assert "not permitted" in str(next(event.error for event in stage.events() if isinstance(event, ToolResult)))


def test_an_answer_whose_answer_was_lost_is_known_when_it_is_repeated(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.seam.lose(TRANSACT, contains="toolResult")
    stage.answer(OK)
    assert stage.seam.is_spent
    finish(stage)


def test_an_answerer_that_dies_before_it_wakes_the_turn_is_made_up_for_by_the_next_post(
    stage: Stage,
) -> None:
    machine = asking(stage, "deleteNode")
    request = stage.requests()[0].request_id
    stage.seam.die(TRANSACT, contains="toolResult")
    with pytest.raises(Death):
        stage.answer(OK)
    assert machine.waits
    stage.answer(OK, request)
    stage.says("Done.")
    assert machine.run() == "Finished"
    truth.check(stage)


def test_an_answerer_that_always_loses_is_told_to_come_again(stage: Stage) -> None:
    asking(stage, "deleteNode")
    request = stage.requests()[0].request_id

    def somebody_else() -> None:
        seen = stage.pause()
        pauses.replace(stage.desk, seen.model_copy(update={"version": seen.version + 1}))

    for number in range(answering.TRIES):
        stage.seam.meanwhile(TRANSACT, somebody_else, contains="toolResult", skip=number)
    with pytest.raises(Unavailable):
        stage.answer(OK, request)


def test_a_snapshot_of_an_answer_is_what_the_next_server_tool_sees(stage: Stage) -> None:
    asking(stage, "deleteNode", "list_documents", snapshot={"site": {"pages": []}, "page": {"id": "old"}})
    pages = [{"id": "new", "slug": "new", "title": "New", "rootNodeId": "r", "nodes": {}}]
    stage.answer(OK, snapshot={"site": {"pages": pages}, "page": {"id": "new"}})
    stage.says("Done.")
    stage.run()
    results = stage.read_by_the_model()
    assert "new" in str(results[1].data)


def test_a_result_of_300_kb_is_taken_kept_and_given_to_the_model(stage: Stage) -> None:
    stage.learn(patient_tool())
    asking(stage, "ask_the_baker")
    stage.answer({"ok": True, "data": {"html": "x" * 90_000, "more": ["y" * 1000] * 5}})
    finish(stage)
    stage.start()
    stage.says(calls(call("getNodeHtml", nodeId="n")))
    stage.run()
    stage.answer({"ok": True, "data": {"html": LARGE}})
    stage.says("Done.")
    assert stage.run() == "finished"
    results = stage.read_by_the_model()
    assert results[-1].data["truncated"]
    assert len(str(results[-1].data)) < 110_000


def test_an_answer_may_hold_any_text(stage: Stage) -> None:
    asking(stage, "deleteNode")
    stage.answer({"ok": True, "data": {"html": "🦀 \ud83e \x00 \u2028", "n": 1e300, "deep": [[[[None]]]]}})
    finish(stage)


@pytest.mark.parametrize("result", [None, 7, "text", [], {"ok": 1}, {"ok": False}, {"ok": False, "error": 5}])
def test_whatever_a_browser_posts_as_its_result_the_turn_goes_on(stage: Stage, result: Any) -> None:
    asking(stage, "deleteNode")
    stage.answer(result)
    finish(stage)
