"""An operator sees the turns of the workspace, what they used, and what each did when."""

from typing import Any

import pytest

from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.limits.usage_counters import TURN_LEASE_SECONDS
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.read.turn_list import list_tenant_turns
from fermata.turns.read.turn_report import get_turn_report
from fermata.usage.ledger import recent_turns
from tests.unit.turns.editor import Editor
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block


def list_all(stage: Stage, limit: int = 50) -> list[dict[str, Any]]:
    views: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = list_tenant_turns(stage.resources, stage.caller, cursor, limit)
        views += page["turns"]
        if not (cursor := page.get("nextCursor", "")):
            return views


def run_turn(stage: Stage) -> str:
    """Run a turn of one round, in a conversation of its own."""
    stage.new_conversation()
    turn = stage.start_turn("Hello")
    stage.script_replies("Done.")
    stage.run_workflow()
    stage.pass_time(1)
    return turn.id


def test_turns_are_listed_with_their_state_and_what_they_used(stage: Stage) -> None:
    done = run_turn(stage)
    paused = stage.start_turn("Add a footer")
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")))
    stage.run_workflow()
    views = {view["bridgeId"]: view for view in list_all(stage)}
    assert {id_: view["status"] for id_, view in views.items()} == {done: "done", paused.id: "paused"}
    assert (views[done]["promptTokens"], views[done]["completionTokens"], views[done]["rounds"]) == (10, 5, 1)
    assert views[done]["endedAt"] >= views[done]["startedAt"]
    assert views[done]["userId"] == "ada"
    stage.answer_request(OK)
    stage.script_replies("Done.")
    stage.run_workflow()
    assert [view["status"] for view in list_all(stage)] == ["done", "done"]


def test_a_turn_that_has_not_asked_the_model_yet_is_listed(stage: Stage) -> None:
    turn = stage.start_turn("Hello")
    (view,) = list_all(stage)
    assert (view["bridgeId"], view["status"], view["requests"]) == (turn.id, "running", 0)
    cancel_turn(stage.resources, stage.caller, turn.id)
    assert [view["status"] for view in list_all(stage)] == ["cancelled"]


def test_an_undo_is_listed_while_it_waits_and_after_its_end(stage: Stage) -> None:
    turn = Editor(stage).run_editing_turn(["insertHtml"])
    undo = stage.start_undo(turn)
    views = {view["bridgeId"]: view for view in list_all(stage)}
    assert (views[undo.id]["status"], views[undo.id]["undoes"]) == ("running", turn.id)
    cancel_turn(stage.resources, stage.caller, undo.id)
    views = {view["bridgeId"]: view for view in list_all(stage)}
    assert (views[undo.id]["status"], views[undo.id]["undoes"], views[undo.id]["requests"]) == ("cancelled", turn.id, 0)
    assert "undoes" not in views[turn.id]


def test_a_turn_that_has_waited_for_hours_without_a_request_is_listed_until_it_ends(stage: Stage) -> None:
    waiting = stage.start_turn("Hello")
    stage.pass_time(2 * TURN_LEASE_SECONDS)
    later = run_turn(stage)
    assert [view["bridgeId"] for view in list_all(stage)] == [waiting.id, later]
    cancel_turn(stage.resources, stage.caller, waiting.id)
    assert [(view["bridgeId"], view["status"]) for view in list_all(stage)] == [
        (waiting.id, "cancelled"),
        (later, "done"),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 200])
def test_every_turn_is_on_one_page(stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: int, rows: int) -> None:
    monkeypatch.setattr(recent_turns, "_ROWS_PER_READ", rows)
    turns = [run_turn(stage) for _ in range(3)]
    paused = stage.start_turn("Add two footers")
    for _ in range(2):
        stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")))
        stage.run_workflow()
        stage.pass_time(1)
        stage.answer_request(OK)
    turns += [run_turn(stage) for _ in range(3)]
    listed = list_all(stage, limit)
    assert sorted(view["bridgeId"] for view in listed) == sorted([paused.id, *turns])
    assert [view["bridgeId"] for view in listed if view["status"] == "done"] == list(reversed(turns))
    assert [view["requests"] for view in listed if view["bridgeId"] == paused.id] == [2]


def test_nobody_sees_turns_of_another_workspace(stage: Stage) -> None:
    turn = run_turn(stage)
    other = Caller(tenant="florist", user="eve", capabilities=frozenset({"ai.turns.manage"}))
    assert list_tenant_turns(stage.resources, other, "", 50)["turns"] == []
    with pytest.raises(NotFound):
        get_turn_report(stage.resources, other, turn)


def test_a_key_for_some_scopes_sees_the_turns_of_these(stage: Stage) -> None:
    run_turn(stage)
    caller = stage.caller.model_copy(update={"scopes": frozenset({"content"})})
    assert list_tenant_turns(stage.resources, caller, "", 50)["turns"] == []


@pytest.mark.parametrize("cursor", ["x", "2026-1", "2026-11-28T00:00:00.000Z#a/b#end", "2026-11-28T00:00:00Z#a#r1"])
def test_a_cursor_of_no_page_is_refused(stage: Stage, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        list_tenant_turns(stage.resources, stage.caller, cursor, 50)


def test_a_list_ends_with_the_first_month_of_the_ledger(stage: Stage) -> None:
    assert "nextCursor" not in list_tenant_turns(stage.resources, stage.caller, "2026-01", 50)
    assert list_all(stage) == []


def test_a_page_before_which_no_turn_is_says_that_it_is_the_last(stage: Stage) -> None:
    turn = run_turn(stage)
    page = list_tenant_turns(stage.resources, stage.caller, "", 50)
    assert ([view["bridgeId"] for view in page["turns"]], "nextCursor" in page) == ([turn], False)
    stage.pass_time(200 * 86_400)
    newest = run_turn(stage)
    page = list_tenant_turns(stage.resources, stage.caller, "", 50)
    assert [view["bridgeId"] for view in page["turns"]] == [newest]
    older = list_tenant_turns(stage.resources, stage.caller, page["nextCursor"], 50)
    assert ([view["bridgeId"] for view in older["turns"]], "nextCursor" in older) == ([turn], False)


def test_a_report_says_what_happened_when_and_what_each_request_used(stage: Stage) -> None:
    turn = stage.start_turn("Add a footer")
    call = tool_call_block("insertHtml", parentId="root", html="<p>x</p>" * 1_000)
    stage.script_replies(reply_with_calls(call, text="I add it."))
    stage.run_workflow()
    stage.answer_request(OK)
    stage.script_replies("Done.")
    stage.run_workflow()
    report = get_turn_report(stage.resources, stage.caller, turn.id)
    assert [(request["round"], request["promptTokens"]) for request in report["modelRequests"]] == [(1, 10), (2, 10)]
    lines = {line["type"]: line for line in report["log"]}
    assert {"bridgeReady", "roundStarted", "text", "toolCall", "toolRequest", "toolResult", "done"} <= lines.keys()
    assert len(lines["toolCall"]["event"]["input"]) < 2_100
    assert [line["seq"] for line in report["log"]] == list(range(1, len(report["log"]) + 1))
    assert all(line["at"] for line in report["log"])


def test_a_long_log_is_reported_in_pages(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = run_turn(stage)
    whole = get_turn_report(stage.resources, stage.caller, turn)["log"]
    monkeypatch.setattr("fermata.turns.read.turn_report.MAX_REPORT_ENTRIES", 1)
    log: list[dict[str, Any]] = []
    after = 0
    while True:
        page = get_turn_report(stage.resources, stage.caller, turn, after)
        log += page["log"]
        if "nextAfter" not in page:
            break
        assert ("modelRequests" in page) is (after == 0)
        after = page["nextAfter"]
    assert log == whole
