"""Undo: a turn of its own that asks no model (decision 0117)."""

from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Delete
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.usage.ledger import ledger_store
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.editor import PAGE, Editor, journal_states, undo_report
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, tool_call_block


@pytest.fixture
def editor(stage: Stage) -> Editor:
    return Editor(stage)


def make_user(name: str, *capabilities: str, tenant: str = "bakery") -> Caller:
    return Caller(tenant=tenant, user=name, capabilities=frozenset(capabilities) or ADA.capabilities)


def test_an_undo_restores_the_page(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
    assert editor.page != PAGE
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE
    assert journal_states(stage, turn) == ["undone"] * 3


def test_edits_are_undone_one_at_a_time_newest_first(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
    undo = stage.start_undo(turn)
    editor.finish()
    keys = [f"{turn.id}/2/0", f"{turn.id}/1/1", f"{turn.id}/1/0"]
    assert [request.undoes for request in stage.tool_requests()] == keys
    assert [request.effect_key for request in stage.tool_requests()] == [
        f"{undo.id}/{number}/0" for number in (1, 2, 3)
    ]
    round_of_one = ["roundStarted", "toolCall", "toolRequest", "toolResult"]
    assert stage.event_types() == ["bridgeReady", *round_of_one * 3, "usage", "done"]
    assert list(undo_report(stage).undone) == keys
    assert undo_report(stage).skipped == ()


def test_an_undo_makes_no_model_request_and_keeps_the_context_size(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    request_count = len(stage.driver.requests)
    before = stage.load_conversation()
    undo = stage.start_undo(turn)
    editor.finish()
    assert len(stage.driver.requests) == request_count
    assert stage.ledger_rows() == []
    ends = ledger_store.read_turn_ends(stage.resources, turn.tenant, [undo.id])
    assert [(end["how"], end["billable"]) for end in ends.values()] == [("done", True)]
    after = stage.load_conversation()
    assert (after.context_tokens, after.prompt_tokens_total) == (before.context_tokens, before.prompt_tokens_total)
    assert after.claim is None


def test_the_model_reads_of_the_undo_in_the_next_turn(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"])
    stage.start_undo(turn)
    editor.finish()
    stage.start_turn("And now?")
    stage.script_replies("I see.")
    stage.run_workflow()
    user_messages = [message for message in stage.driver.requests[-1].messages if message.role == "user"]
    note, question = user_messages[-2:]
    assert note.content[0].kind == "text"
    assert "deleteNode" in note.content[0].text
    assert "insertHtml" in note.content[0].text
    assert question.content[0].kind == "text"
    assert question.content[0].text == "And now?"


def test_an_undo_goes_back_to_the_given_edit(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"], ["insertHtml"])
    stage.start_undo(turn, through=f"{turn.id}/2/0")
    editor.finish()
    assert journal_states(stage, turn) == ["applied", "undone", "undone"]
    assert len(undo_report(stage).undone) == 2
    assert undo_report(stage).skipped == ()
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE
    assert len(undo_report(stage).undone) == 1


@pytest.mark.parametrize("through", ["elsewhere/1/0", "nonsense", "{}/x/0", "{}/1/7", "{}/9/0"])
def test_an_undo_through_another_turns_edit_is_refused(stage: Stage, editor: Editor, through: str) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    with pytest.raises(InvalidRequest):
        stage.start_undo(turn, through=through.format(turn.id))


def test_a_second_undo_conflicts(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    undo = stage.start_undo(turn)
    editor.finish()
    with pytest.raises(Conflict) as refused:
        stage.start_undo(turn)
    assert undo.id in refused.value.message
    assert stage.claim() is None


def test_undoing_a_turn_without_edits_conflicts(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    with pytest.raises(Conflict, match="nothing to undo"):
        stage.start_undo()


def test_an_undo_can_be_undone_repeatedly(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["deleteNode"])
    after = dict(editor.page)
    undo = stage.start_undo(turn)
    editor.finish()
    redo = stage.start_undo(undo)
    editor.finish()
    assert editor.page == after
    assert journal_states(stage, undo) == ["undone"] * 3
    stage.start_undo(redo)
    editor.finish()
    assert editor.page == PAGE


def test_a_conflicting_edit_is_skipped_and_the_next_one_is_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    editor.is_strict = False
    stage.start_undo(turn)
    assert stage.run_workflow() == "waiting"
    [request] = stage.show_turn()["pending"]
    conflict = editor.make_conflict() | {"error": "The heading was changed."}
    editor.send_result(request, conflict)
    editor.finish()
    results = [event for event in stage.events() if event.type == "toolResult"]
    assert [(event.ok, event.conflict) for event in results] == [(False, True), (True, None)]
    assert [skipped.reason for skipped in undo_report(stage).skipped] == ["The heading was changed."]
    assert journal_states(stage, turn) == ["undone", "applied"]
    assert "Still there: insertHtml" in str(stage.load_messages()[-1].content)


def test_the_next_undo_requests_a_skipped_edit_again(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    editor.is_strict = False
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": False, "error": "Not now."})
    editor.finish()
    stage.start_undo(turn)
    editor.finish()
    assert [request.undoes for request in stage.tool_requests()] == [f"{turn.id}/2/0"]
    assert journal_states(stage, turn) == ["undone", "undone"]


def test_a_strict_editor_refuses_every_edit_behind_a_change_by_another_user(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    editor.page["c"] = "by hand"
    after = dict(editor.page)
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == after
    assert undo_report(stage).undone == ()
    assert [skipped.reason for skipped in undo_report(stage).skipped] == ["Somebody was here."] * 2
    assert stage.load_messages()[-1].role == "assistant", "nothing happened that a model needs to know"


WITH_INVERSE = OK | {"inverse": {"tool": "restore", "input": {"patch": {}}}}


def requested_revisions(stage: Stage, *revisions: str) -> list[str | None]:
    """Undo with an editor that numbers its revisions, and return the revision that each request named."""
    requested = []
    for revision in revisions:
        assert stage.run_workflow() == "waiting"
        requested.append(stage.tool_requests()[-1].revision)
        stage.answer_request({"ok": True, "revision": revision})
    assert stage.run_workflow() == "finished"
    return requested


def test_each_inverse_is_planned_on_the_newest_revision(stage: Stage) -> None:
    turn = stage.start_turn(revision="1")
    stage.script_replies(
        reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")),
        reply_with_calls(tool_call_block("insertHtml", parentId="r", html="y")),
    )
    stage.script_replies("Done.")
    for revision in ("2", "3"):
        stage.run_workflow()
        stage.answer_request(WITH_INVERSE | {"revision": revision})
    stage.run_workflow()
    stage.start_undo(turn)
    assert requested_revisions(stage, "4", "5") == ["3", "4"]


def test_an_edit_below_a_conflict_is_planned_on_the_revision_it_left(stage: Stage) -> None:
    turn = stage.start_turn(revision="1")
    stage.script_replies(
        reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")),
        reply_with_calls(tool_call_block("getNodeHtml", nodeId="a")),
    )
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="y")), "Done.")
    stage.run_workflow()
    stage.answer_request(WITH_INVERSE | {"revision": "2"})
    stage.run_workflow()
    stage.answer_request({"ok": True, "data": "…", "revision": "3, by hand"})
    stage.run_workflow()
    stage.answer_request(WITH_INVERSE | {"revision": "4"})
    stage.run_workflow()
    stage.start_undo(turn)
    assert requested_revisions(stage, "5", "6") == ["4", "2"]


def test_the_editor_gets_the_tool_names_it_knows(stage: Stage) -> None:
    turn = stage.start_turn(tool_names="prefixed")
    stage.script_replies(reply_with_calls(tool_call_block("site_insert_html", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": {"tool": "deleteNode", "input": {"nodeId": "n1"}}})
    stage.run_workflow()
    for names, name in ((None, "site_delete_node"), ("seed", "deleteNode")):
        stage.start_undo(turn, tool_names=names)
        stage.run_workflow()
        assert stage.tool_requests()[-1].tool_name == name
        stage.cancel_turn()


def edit_with_two_inverse_calls(stage: Stage) -> Any:
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    steps = [{"tool": "restore", "input": {"patch": {"step": number}}} for number in (1, 2)]
    stage.answer_request(OK | {"inverse": steps})
    stage.run_workflow()
    return turn


def test_an_inverse_of_several_calls_is_requested_call_by_call(stage: Stage) -> None:
    turn = edit_with_two_inverse_calls(stage)
    stage.start_undo(turn)
    for _ in range(2):
        assert stage.run_workflow() == "waiting"
        stage.answer_request({"ok": True})
    assert stage.run_workflow() == "finished"
    assert [request.input for request in stage.tool_requests()] == [{"patch": {"step": 1}}, {"patch": {"step": 2}}]
    assert journal_states(stage, turn) == ["undone"]


def test_the_next_undo_continues_an_inverse_that_failed_half_way(stage: Stage) -> None:
    turn = edit_with_two_inverse_calls(stage)
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": True})
    stage.run_workflow()
    stage.answer_request({"ok": False, "error": "No."})
    assert stage.run_workflow() == "finished"
    assert journal_states(stage, turn) == ["partly"]
    [skipped] = undo_report(stage).skipped
    assert skipped.reason == "Only some of its calls were undone. No."
    assert "in part" in str(stage.load_messages()[-1].content)
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": True})
    assert stage.run_workflow() == "finished"
    assert [request.input for request in stage.tool_requests()] == [{"patch": {"step": 2}}]
    assert journal_states(stage, turn) == ["undone"]


def test_calls_behind_a_failed_call_of_an_inverse_are_not_requested(stage: Stage) -> None:
    turn = edit_with_two_inverse_calls(stage)
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": False, "error": "No."})
    assert stage.run_workflow() == "finished"
    assert len(stage.tool_requests()) == 1
    assert stage.event_types().count("toolResult") == 2
    assert journal_states(stage, turn) == ["applied"]


def test_an_edit_without_a_usable_inverse_is_reported(stage: Stage, editor: Editor) -> None:
    turn = stage.start_turn(revision=editor.revision)
    stage.script_replies(
        reply_with_calls(
            tool_call_block("insertHtml", parentId="r", html="x"), tool_call_block("deleteNode", nodeId="a")
        ),
        "Done.",
    )
    stage.run_workflow()
    [request] = stage.show_turn()["pending"]
    editor.send_result(
        request, {name: value for name, value in editor.apply_request(request).items() if name != "inverse"}
    )
    editor.finish()
    stage.start_undo(turn)
    editor.finish()
    assert journal_states(stage, turn) == ["stuck", "undone"]
    assert [(edit.effect_key, edit.reason, edit.code) for edit in undo_report(stage).skipped] == [
        (f"{turn.id}/1/0", "The editor reported no inverse for it.", "undoImpossible")
    ]


def test_another_users_turn_cannot_be_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    for stranger in (make_user("eve"), make_user("ada", tenant="studio")):
        with pytest.raises(NotFound):
            stage.start_undo(turn, caller=stranger)


def test_a_caller_who_manages_turns_may_undo_any_turn(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.caller = make_user("eve", "ai.turns.manage", "ai.chat", "ai.tools.write", "site.structure.edit")
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE
    stage.caller = ADA
    assert stage.load_messages()[-1].turn == stage.turn.id


def test_undoing_an_edit_needs_the_capabilities_of_the_edit(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.start_undo(turn, caller=make_user("ada", "ai.chat", "ai.tools.write", "site.style.edit"))
    editor.finish()
    assert stage.tool_requests() == []
    assert [(edit.reason, edit.code) for edit in undo_report(stage).skipped] == [
        ("The user who undoes the edits may not use insertHtml.", "undoNotAllowed")
    ]


def test_an_unanswered_undo_ends_with_every_setting(staged: MakeStage) -> None:
    stage = staged(unanswered_calls="tell_model")
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    stage.pass_time(91)
    stage.run_workflow()
    assert stage.event_types()[-1] == "error"
    newest, oldest = undo_report(stage).skipped
    assert "did not answer" in newest.reason
    assert "before it reached this" in oldest.reason
    assert (newest.code, oldest.code) == ("undoUnanswered", "undoNotReached")
    assert stage.claim() is None


def test_a_cancelled_undo_reports_and_the_rest_can_still_be_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"], ["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    editor.answer_pending()
    stage.run_workflow()
    assert stage.cancel_turn() == "cancelled"
    assert len(undo_report(stage).undone) == 1
    assert len(undo_report(stage).skipped) == 2
    assert "Undone, the newest first: insertHtml" in str(stage.load_messages()[-1].content)
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE


def test_a_prompt_conflicts_with_a_running_undo(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    undo = stage.start_undo(turn)
    stage.run_workflow()
    for start in (lambda: stage.start_undo(turn), lambda: stage.start_turn("Now!")):
        with pytest.raises(Conflict):
            start()
    stage._turn = undo
    editor.finish()
    stage.start_turn("Now!")


def test_a_running_turn_cannot_be_undone(stage: Stage, editor: Editor) -> None:
    turn = stage.start_turn(revision=editor.revision)
    stage.script_replies(
        reply_with_calls(
            tool_call_block("insertHtml", parentId="r", html="x"), tool_call_block("deleteNode", nodeId="a")
        ),
        "Done.",
    )
    stage.run_workflow()
    editor.answer_pending()
    with pytest.raises(Conflict, match="still running"):
        stage.start_undo(turn)
    stage._turn = turn
    editor.finish()
    assert stage.event_types()[-1] == "done"


def test_an_instatic_prompt_interrupts_an_undo_but_an_undo_interrupts_nothing(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], dialect="instatic")
    stage.pass_time(10)
    running = stage.start_turn("More", dialect="instatic")
    stage.pass_time(10)
    with pytest.raises(Conflict):
        stage.start_undo(turn)
    stage._turn = running
    stage.cancel_turn()
    undo = stage.start_undo(turn)
    stage.run_workflow()
    stage.pass_time(10)
    stage.start_turn("Even more", dialect="instatic")
    stage._turn = undo
    assert stage.event_types()[-1] == "cancelled"


def test_the_same_key_joins_the_started_undo_even_after_its_end(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    first = stage.start_undo(turn, idempotency_key="once")
    assert stage.start_undo(turn, idempotency_key="once").id == first.id
    editor.finish()
    assert stage.start_undo(turn, idempotency_key="once").id == first.id
    with pytest.raises(Conflict, match="another request"):
        stage.start_undo(turn, idempotency_key="once", through=f"{turn.id}/1/0")


def test_an_undo_continues_when_an_instatic_browser_disconnects(staged: MakeStage) -> None:
    """Closing a prompt's stream means stop; closing the stream of an undo is a reload."""
    stage = staged(fermata_stage="local", abandoned_seconds=3600)
    turn = Editor(stage).run_editing_turn(["insertHtml"], dialect="instatic")
    undo = stage.start_undo(turn, dialect="instatic")
    watch = AbandonmentWatcher(stage.resources)
    for turn_to_watch in (undo, turn):
        watch.add_reader(turn_to_watch)
        watch.remove_reader(turn_to_watch, is_broken_off=True)
    assert list(watch._timers) == [turn.pk]
    watch.add_reader(turn)
    watch.remove_reader(turn, is_broken_off=False, has_seen_end=True)  # so that no timer outlives the test


def test_an_undo_with_a_failed_execution_ends_with_its_own_error(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    editor.answer_pending()
    stage.recover_turn(has_execution_failed=True)
    end = stage.events()[-1]
    assert end.type == "error"
    assert "Undo again" in end.message
    assert len(undo_report(stage).undone) == 1
    stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE


def test_the_status_names_the_undone_turn(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    status = stage.show_turn()
    assert (status["undoes"], status["status"]) == (turn.id, "paused")
    assert status["pending"][0]["undoes"] == f"{turn.id}/1/0"


def test_a_large_inverse_is_loaded_from_the_bucket(stage: Stage) -> None:
    patch = {"html": "x" * 200_000}
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": {"tool": "restore", "input": {"patch": patch}}})
    stage.run_workflow()
    stage.start_undo(turn)
    stage.run_workflow()
    assert stage.tool_requests()[-1].input == {"patch": patch}


def test_a_turn_that_is_about_to_expire_cannot_be_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.pass_time(turn.expires - stage.clock.time() - 1800)
    with pytest.raises(Conflict, match="too old to be undone"):
        stage.start_undo(turn)
    assert stage.claim() is None


def test_no_request_of_an_undo_outlasts_the_journal_it_reports_from(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    stage.pass_time(turn.expires - stage.clock.time() - 3620)
    stage.start_undo(turn)
    stage.run_workflow()
    assert stage.load_pause().calls[0].deadline == turn.expires - 3600
    editor.answer_pending()
    stage.pass_time(21)
    assert stage.run_workflow() == "finished"
    end = stage.events()[-1]
    assert (end.type, getattr(end, "code", "")) == ("error", "too_old")
    assert undo_report(stage).undone == (f"{turn.id}/2/0",)
    assert [edit.effect_key for edit in undo_report(stage).skipped] == [f"{turn.id}/1/0"]


def test_an_undo_that_finds_its_journal_expired_is_not_done(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.pass_time(turn.expires - stage.clock.time() - 4000)
    stage.start_undo(turn)
    stage.pass_time(5000)
    for row in stage.stored_items(turn.pk):
        stage.resources.tables.write_items(Delete(stage.resources.settings.bridges_table, row["pk"], row["sk"]))
    assert stage.run_workflow() == "finished"
    assert getattr(stage.events()[-1], "code", "") == "too_old"
    assert stage.claim() is None
