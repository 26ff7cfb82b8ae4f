"""Run an undo of three edits under disturbances, and compare its report with the page at the end."""

from collections import Counter
from typing import Any

from fermata.domain.events import ToolResultEvent
from tests.unit.turns import invariants
from tests.unit.turns.disturbed_turn import DisturbedTurn
from tests.unit.turns.editor import PAGE, Editor, journal_entries, undo_report
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine


class DisturbedUndo(DisturbedTurn):
    """The undo of an insertion, a deletion and, in the next reply, another insertion."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.clock.runs_threads = False
        self.bake_counts = Counter()
        self.editor = Editor(stage)
        self.edited = self.editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
        self.first = stage.start_undo(self.edited, idempotency_key="once")
        self.machines = [StateMachine(stage)]
        self.answers = self.editor.answers
        self.invocations = [self.machine.invocation]

    def answer(self, result: Any = None) -> None:
        """Answer every pending request by what the page really did."""
        for request in self.stage.show_turn()["pending"]:
            self.editor.send_result(request, result or self.editor.apply_request(request))

    def answer_differently(self) -> None:
        """Answer as another tab that did nothing."""
        self.answer({"ok": False, "error": "Not here."})

    def undo_again(self) -> None:
        """Start another undo of the same turn. It is refused while this one runs."""
        try:
            self.stage.start_undo(self.edited)
        finally:
            if self.stage.turn.id != self.first.id:
                self.stage.cancel_turn()
            self.stage._turn = self.first

    def repeat_the_undo(self) -> None:
        assert self.stage.start_undo(self.edited, idempotency_key="once").id == self.first.id

    def run_to_end(self) -> None:
        super().run_to_end()
        self.stage._turn = self.first

    def check(self) -> None:
        assert not [error for machine in self.machines for error in machine.unexpected_errors]
        events = self.stage.events()
        invariants.check_log(self.stage.entries(), events)
        invariants.check_calls(events)
        assert self.stage.claim() is None
        assert "open" not in self.stage.turn_row()
        self.check_page()
        self.check_note()
        invariants.check_next_prompt(self.stage)

    def check_page(self) -> None:
        """Check that the edits reported as undone are, and that skipped ones are not, unless that is unknown."""
        report = undo_report(self.stage)
        journal = journal_entries(self.stage, self.edited)
        skipped = {edit.effect_key: edit.reason for edit in report.skipped}
        marked = {entry.edit.effect_key for entry in journal if entry.mark and entry.mark.marking_turn == self.first.id}
        assert set(report.undone) | set(skipped) == {entry.edit.effect_key for entry in journal}
        assert set(report.undone) == {
            entry.edit.effect_key for entry in journal if entry.state == "undone" and entry.edit.effect_key in marked
        }
        requests = Counter(request.undoes for request in self.stage.tool_requests())
        assert all(count == 1 for count in requests.values()), "an inverse was requested twice"
        unknown = {key for key, reason in skipped.items() if "check whether" in reason or reason == "Not here."}
        undone = self.undone_on_the_page()
        assert undone - unknown == set(report.undone) - unknown
        if not skipped:
            assert self.editor.page == PAGE

    def undone_on_the_page(self) -> set[str]:
        """Return the effect keys of the edits that have no effect on the page."""
        page = self.editor.page
        turn = self.edited.id
        visible = {f"{turn}/1/0": "n1" in page, f"{turn}/1/1": "a" not in page, f"{turn}/2/0": "n2" in page}
        return {key for key, is_visible in visible.items() if not is_visible}

    def check_note(self) -> None:
        notes = [message for message in self.stage.load_messages() if message.turn == self.first.id]
        assert all(note.role == "user" for note in notes)
        assert len(notes) <= 1
        assert bool(notes) >= bool(undo_report(self.stage).undone)


class DisturbedEditing(DisturbedUndo):
    """The turn that makes these edits, under disturbances."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.clock.runs_threads = False
        self.bake_counts = Counter()
        self.editor = Editor(stage)
        self.edited = self.first = stage.start_turn("Edit", revision=self.editor.revision)
        self.script_edits()
        self.machines = [StateMachine(stage)]
        self.answers = self.editor.answers
        self.invocations = [self.machine.invocation]

    def script_edits(self) -> None:
        insert = {"parentId": "root", "html": "<p>x</p>"}
        self.stage.script_replies(
            reply_with_calls(tool_call_block("insertHtml", **insert), tool_call_block("deleteNode", nodeId="a"))
        )
        self.stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **insert)), "Done.")

    def check(self) -> None:
        """Check that every successful edit is in the journal once and can be undone.

        Undoing is not checked if the page was edited by a call whose answer came too late or after another tab's.
        """
        assert not [error for machine in self.machines for error in machine.unexpected_errors]
        invariants.check_invariants(self.stage, next_prompt=False)
        successful = {
            event.tool_call_id for event in self.stage.events() if isinstance(event, ToolResultEvent) and event.ok
        }
        journal = journal_entries(self.stage, self.edited)
        assert {entry.edit.tool_call_id for entry in journal} == successful
        assert len(journal) == len(successful)
        if journal and self.editor.acted_effect_keys == {entry.edit.effect_key for entry in journal}:
            self.stage.start_undo(self.edited)
            self.editor.finish()
            assert {entry.state for entry in journal_entries(self.stage, self.edited)} == {"undone"}
            assert self.editor.page == PAGE
        invariants.check_next_prompt(self.stage)
