"""The journal: each edit an editor tells of, once, with its way back."""

from typing import Any

import pytest

from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.turns import edit_journal
from fermata.turns.read import journal_pages
from fermata.turns.read.journal_pages import get_journal_page
from fermata.turns.turn import Turn
from tests.unit.turns.editor import Editor, journal_entries
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

RESTORE: dict[str, Any] = {"tool": "restore", "input": {"patch": {"at": 1}}}
TRANSACT = "dynamodb.TransactWriteItems"


def asking(stage: Stage, *names: str, revision: str = "r1") -> Turn:
    turn = stage.start_turn(revision=revision)
    stage.script_replies(reply_with_calls(*(tool_call_block(name, nodeId="a") for name in names)), "Done.")
    assert stage.run_workflow() == "waiting"
    return turn


def kept(stage: Stage, answer: dict[str, Any], name: str = "deleteNode") -> list[edit_journal.JournalEntry]:
    turn = asking(stage, name)
    stage.answer_request(answer)
    return journal_entries(stage, turn)


def test_an_edit_is_kept_with_its_way_back(stage: Stage) -> None:
    [entry] = kept(stage, OK | {"revision": "r2", "inverse": [RESTORE]})
    request = stage.tool_requests()[0]
    shown = journal_pages.journal_entry_to_wire(entry)
    at = shown.pop("at")
    assert at.startswith("20")
    assert shown == {
        "effectKey": f"{stage.turn.id}/1/0",
        "seq": len(stage.events()),
        "round": 1,
        "call": 0,
        "toolCallId": request.tool_call_id,
        "toolName": "deleteNode",
        "input": '{"nodeId":"a"}',
        "inverse": ["restore"],
        "revisionBefore": "r1",
        "revisionAfter": "r2",
        "state": "applied",
    }
    assert [step.to_wire() for step in edit_journal.load_inverse_steps(stage.resources, stage.turn.tenant, entry)] == [
        RESTORE
    ]


def test_one_call_may_stand_for_a_list_of_one(stage: Stage) -> None:
    [entry] = kept(stage, OK | {"inverse": RESTORE})
    assert entry.inverse_tools == ("restore",)


def test_wire_names_are_understood_and_arguments_made_to_fit(stage: Stage) -> None:
    inverse = {"tool": "site_insert_html", "input": {"parentId": "a", "html": "<p>", "index": "2", "more": 1}}
    [entry] = kept(stage, OK | {"inverse": inverse})
    [step] = edit_journal.load_inverse_steps(stage.resources, stage.turn.tenant, entry)
    assert (step.tool, step.input) == ("insertHtml", {"parentId": "a", "html": "<p>", "index": 2})


@pytest.mark.parametrize(
    ("inverse", "problem"),
    [
        ("undo", "an object with 'tool' and 'input'"),
        ([RESTORE, 7], "an object with 'tool' and 'input'"),
        ([{"tool": "no_such"}], "Unknown tool: no_such"),
        ([{"tool": "getNodeHtml", "input": {"nodeId": "a"}}], "getNodeHtml changes nothing"),
        ([{"tool": "list_tokens", "input": {}}], "list_tokens changes nothing"),
        ([{"tool": "deleteNode", "input": {}}], "nodeId"),
        ([{"tool": "deleteNode"}], "deleteNode"),
        ([{"tool": "restore", "input": {"patch": "text"}}], "patch"),
        ([RESTORE] * 21, "20 calls at most"),
        ([{"tool": "restore", "input": {"patch": {"x": "y" * 1_000_001}}}], "1,000,000 characters at most"),
        ([], "no way back"),
    ],
)
def test_an_inverse_that_cannot_be_used_is_left_out_and_the_answer_taken(
    stage: Stage, inverse: Any, problem: str
) -> None:
    [entry] = kept(stage, OK | {"inverse": inverse})
    assert (entry.state, entry.inverse_tools) == ("stuck", ())
    assert problem in entry.edit.problem
    stage.run_workflow()
    assert stage.results_sent_to_model()[-1].ok


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (OK, "deleteNode"),
        (OK | {"revision": "r1"}, "deleteNode"),
        (OK | {"revision": "r2"}, "getNodeHtml"),
        (OK | {"inverse": [RESTORE]}, "getNodeHtml"),
        ({"ok": False, "error": "No.", "revision": "r2"}, "deleteNode"),
        ({"ok": False, "error": "No.", "conflict": True, "revision": "r2", "inverse": [RESTORE]}, "deleteNode"),
    ],
)
def test_what_is_no_edit_is_not_kept(stage: Stage, answer: dict[str, Any], name: str) -> None:
    assert kept(stage, answer, name) == []


def test_an_edit_without_a_way_back_is_listed_by_an_editor_that_tells_revisions(stage: Stage) -> None:
    [entry] = kept(stage, OK | {"revision": "r2"})
    assert (entry.state, entry.edit.problem) == ("stuck", "The editor gave no way back for it.")


def test_an_edit_that_failed_half_way_may_have_a_way_back(stage: Stage) -> None:
    [entry] = kept(stage, {"ok": False, "error": "Half of it is done.", "inverse": RESTORE})
    assert entry.state == "applied"


def test_the_model_never_reads_an_inverse(stage: Stage) -> None:
    kept(stage, OK | {"revision": "r2", "inverse": [RESTORE]})
    stage.run_workflow()
    assert stage.results_sent_to_model()[-1].data == OK["data"]
    assert "restore" not in str(stage.load_messages())


def test_an_answer_five_times_is_one_edit(stage: Stage) -> None:
    turn = asking(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    for _ in range(5):
        stage.answer_request(OK | {"inverse": [RESTORE]}, request)
    assert len(journal_entries(stage, turn)) == 1


def test_an_answer_that_got_lost_on_its_way_back_is_one_edit(stage: Stage) -> None:
    turn = asking(stage, "deleteNode")
    stage.faults.lose_response(TRANSACT, contains="restore")
    stage.answer_request(OK | {"inverse": [RESTORE]})
    assert len(journal_entries(stage, turn)) == 1
    assert stage.event_types().count("toolResult") == 1


def test_an_answer_that_came_after_the_end_is_no_edit(stage: Stage) -> None:
    turn = asking(stage, "deleteNode")
    stage.faults.interrupt(TRANSACT, stage.cancel_turn, contains="restore")
    with pytest.raises(Exception, match="no longer waited for"):
        stage.answer_request(OK | {"inverse": [RESTORE]})
    assert journal_entries(stage, turn) == []


def test_a_large_inverse_lies_in_the_bucket(stage: Stage) -> None:
    large = {"tool": "restore", "input": {"patch": {"html": "x" * 100_000}}}
    [entry] = kept(stage, OK | {"inverse": large})
    assert "blob" in entry.inverse_row
    assert [step.to_wire() for step in edit_journal.load_inverse_steps(stage.resources, stage.turn.tenant, entry)] == [
        large
    ]


def test_the_journal_ends_with_its_turn(stage: Stage) -> None:
    [entry] = kept(stage, OK | {"inverse": RESTORE})
    assert entry.inverse_row["ttl"] == stage.turn.expires


def test_the_journal_is_read_page_by_page_while_it_grows(stage: Stage) -> None:
    turn = asking(stage, *["deleteNode"] * 5)
    seen: list[str] = []
    cursor: str | None = ""
    for _ in range(4):
        stage.answer_request(OK | {"inverse": RESTORE})
    while cursor is not None:
        page, cursor = edit_journal.read_journal_page(stage.resources, turn, after=cursor, limit=3)
        seen += [entry.edit.effect_key for entry in page]
        if len(seen) == 3:
            stage.answer_request(OK | {"inverse": RESTORE})
    assert seen == [f"{turn.id}/1/{index}" for index in range(5)]


def test_the_journal_is_shown_page_by_page_to_who_may_see_the_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_pages, "MAX_JOURNAL_PAGE_EDITS", 2)
    turn = asking(stage, *["deleteNode"] * 3)
    for _ in range(3):
        stage.answer_request(OK | {"inverse": RESTORE})
    first = get_journal_page(stage.resources, stage.caller, turn.id)
    second = get_journal_page(stage.resources, stage.caller, turn.id, first["nextCursor"])
    assert [entry["call"] for entry in (*first["entries"], *second["entries"])] == [0, 1, 2]
    assert "nextCursor" not in second
    with pytest.raises(InvalidRequest):
        get_journal_page(stage.resources, stage.caller, turn.id, "j#1")
    with pytest.raises(NotFound):
        get_journal_page(
            stage.resources, Caller(tenant="bakery", user="eve", capabilities=frozenset({"ai.chat"})), turn.id
        )


def test_pages_are_the_same_when_every_edit_has_a_mark(stage: Stage) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"] * 5)
    stage.start_undo(turn)
    editor.finish()
    page, cursor = edit_journal.read_journal_page(stage.resources, turn, limit=3)
    rest, end = edit_journal.read_journal_page(stage.resources, turn, after=cursor or "", limit=3)
    assert [entry.state for entry in (*page, *rest)] == ["undone"] * 5
    assert (len(page), end) == (3, None)


@pytest.mark.parametrize("count", [9, 10, 11, 21])
def test_an_undo_of_many_edits_misses_none(stage: Stage, count: int) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"] * count)
    stage.start_undo(turn)
    editor.finish()
    assert [entry.state for entry in journal_entries(stage, turn)] == ["undone"] * count
    keys = [entry.key for entry in edit_journal.iter_journal_newest_first(stage.resources, turn.tenant, turn.id)]
    assert keys == [edit_journal.build_edit_key(1, index) for index in reversed(range(count))]
