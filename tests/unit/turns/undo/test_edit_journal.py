"""The journal: every edit that an editor reports, once, with its inverse (docs/revisions-and-undo.md)."""

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


def run_until_edit_request(stage: Stage, *names: str, revision: str = "r1") -> Turn:
    turn = stage.start_turn(revision=revision)
    stage.script_replies(reply_with_calls(*(tool_call_block(name, nodeId="a") for name in names)), "Done.")
    assert stage.run_workflow() == "waiting"
    return turn


def journal_after(stage: Stage, answer: dict[str, Any], name: str = "deleteNode") -> list[edit_journal.JournalEntry]:
    turn = run_until_edit_request(stage, name)
    stage.answer_request(answer)
    return journal_entries(stage, turn)


def test_an_edit_is_stored_with_its_inverse(stage: Stage) -> None:
    [entry] = journal_after(stage, OK | {"revision": "r2", "inverse": [RESTORE]})
    request = stage.tool_requests()[0]
    wire_entry = journal_pages.journal_entry_to_wire(entry)
    at = wire_entry.pop("at")
    assert at.startswith("20")
    assert wire_entry == {
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
    assert [step.to_wire() for step in edit_journal.load_inverse_steps(stage.resources, entry)] == [RESTORE]


def test_an_inverse_may_be_a_single_call(stage: Stage) -> None:
    [entry] = journal_after(stage, OK | {"inverse": RESTORE})
    assert entry.inverse_tools == ("restore",)


def test_an_inverse_may_use_wire_names_and_coercible_arguments(stage: Stage) -> None:
    inverse = {"tool": "site_insert_html", "input": {"parentId": "a", "html": "<p>", "index": "2", "more": 1}}
    [entry] = journal_after(stage, OK | {"inverse": inverse})
    [step] = edit_journal.load_inverse_steps(stage.resources, entry)
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
        ([], "no inverse"),
    ],
)
def test_an_answer_with_an_unusable_inverse_is_accepted_without_it(stage: Stage, inverse: Any, problem: str) -> None:
    [entry] = journal_after(stage, OK | {"inverse": inverse})
    assert (entry.state, entry.inverse_tools) == ("stuck", ())
    assert problem in entry.edit.inverse_problem
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
def test_results_that_change_nothing_are_not_stored(stage: Stage, answer: dict[str, Any], name: str) -> None:
    assert journal_after(stage, answer, name) == []


def test_an_edit_without_an_inverse_is_listed_if_it_has_a_revision(stage: Stage) -> None:
    [entry] = journal_after(stage, OK | {"revision": "r2"})
    assert (entry.state, entry.edit.inverse_problem) == ("stuck", "The editor reported no inverse for it.")


def test_a_failed_edit_may_have_an_inverse(stage: Stage) -> None:
    [entry] = journal_after(stage, {"ok": False, "error": "Half of it is done.", "inverse": RESTORE})
    assert entry.state == "applied"


def test_the_model_never_gets_an_inverse(stage: Stage) -> None:
    journal_after(stage, OK | {"revision": "r2", "inverse": [RESTORE]})
    stage.run_workflow()
    assert stage.results_sent_to_model()[-1].data == OK["data"]
    assert "restore" not in str(stage.load_messages())


def test_a_result_sent_five_times_is_one_edit(stage: Stage) -> None:
    turn = run_until_edit_request(stage, "deleteNode")
    request = stage.tool_requests()[0].request_id
    for _ in range(5):
        stage.answer_request(OK | {"inverse": [RESTORE]}, request)
    assert len(journal_entries(stage, turn)) == 1


def test_a_result_whose_response_was_lost_is_one_edit(stage: Stage) -> None:
    turn = run_until_edit_request(stage, "deleteNode")
    stage.faults.lose_response(TRANSACT, contains="restore")
    stage.answer_request(OK | {"inverse": [RESTORE]})
    assert len(journal_entries(stage, turn)) == 1
    assert stage.event_types().count("toolResult") == 1


def test_a_result_after_the_end_is_no_edit(stage: Stage) -> None:
    turn = run_until_edit_request(stage, "deleteNode")
    stage.faults.interrupt(TRANSACT, stage.cancel_turn, contains="restore")
    with pytest.raises(Exception, match="is not open"):
        stage.answer_request(OK | {"inverse": [RESTORE]})
    assert journal_entries(stage, turn) == []


def test_a_large_inverse_is_stored_in_the_bucket(stage: Stage) -> None:
    large = {"tool": "restore", "input": {"patch": {"html": "x" * 100_000}}}
    [entry] = journal_after(stage, OK | {"inverse": large})
    assert "blob" in entry.inverse_item
    assert [step.to_wire() for step in edit_journal.load_inverse_steps(stage.resources, entry)] == [large]


def test_the_journal_expires_with_its_turn(stage: Stage) -> None:
    [entry] = journal_after(stage, OK | {"inverse": RESTORE})
    assert entry.inverse_item["ttl"] == stage.turn.expires


def test_the_journal_is_read_page_by_page_while_it_grows(stage: Stage) -> None:
    turn = run_until_edit_request(stage, *["deleteNode"] * 5)
    effect_keys: list[str] = []
    cursor: str | None = ""
    for _ in range(4):
        stage.answer_request(OK | {"inverse": RESTORE})
    while cursor is not None:
        page, cursor = edit_journal.read_journal_page(stage.resources, turn, after=cursor, limit=3)
        effect_keys += [entry.edit.effect_key for entry in page]
        if len(effect_keys) == 3:
            stage.answer_request(OK | {"inverse": RESTORE})
    assert effect_keys == [f"{turn.id}/1/{index}" for index in range(5)]


def test_the_journal_is_shown_to_callers_who_may_see_the_turn(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_pages, "MAX_JOURNAL_PAGE_EDITS", 2)
    turn = run_until_edit_request(stage, *["deleteNode"] * 3)
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


def test_marks_do_not_change_the_pages(stage: Stage) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"] * 5)
    stage.start_undo(turn)
    editor.finish()
    page, cursor = edit_journal.read_journal_page(stage.resources, turn, limit=3)
    rest, end = edit_journal.read_journal_page(stage.resources, turn, after=cursor or "", limit=3)
    assert [entry.state for entry in (*page, *rest)] == ["undone"] * 5
    assert (len(page), end) == (3, None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [9, 10, 11, 21])
def test_an_undo_of_many_edits_misses_none(stage: Stage, count: int) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"] * count)
    stage.start_undo(turn)
    editor.finish()
    assert [entry.state for entry in journal_entries(stage, turn)] == ["undone"] * count
    keys = [entry.key for entry in edit_journal.iter_journal_newest_first(stage.resources, turn.tenant, turn.id)]
    assert keys == [edit_journal.build_edit_key(1, index) for index in reversed(range(count))]
