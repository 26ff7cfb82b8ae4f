"""An undo of three edits, and whatever happens to it; the page tells at the end what was really taken back."""

from collections import Counter
from typing import Any

from fermata.domain.events import ToolResultEvent
from tests.unit.turns import invariants
from tests.unit.turns.disturbed_turn import DisturbedTurn
from tests.unit.turns.editor import PAGE, Editor, journal_entries, undo_report
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine


class DisturbedUndo(DisturbedTurn):
    """The day begins when the edits are made: an insertion, a deletion, and in the next reply another insertion."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.baked = Counter()
        self.editor = Editor(stage)
        self.edited = self.editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
        self.first = stage.start_undo(self.edited, idempotency_key="once")
        self.machines = [StateMachine(stage)]
        self.answers = self.editor.answers
        self.wakes = [self.machine.wake]

    def answer(self, result: Any = None) -> None:
        """Out of whoever's day: a request is answered by what the page really did."""
        for request in self.stage.show_turn()["pending"]:
            self.editor.send_result(request, result or self.editor.apply_request(request))

    def other_answer(self) -> None:
        """Another tab, which did nothing and says so."""
        self.answer({"ok": False, "error": "Not here."})

    def another_undo(self) -> None:
        """Refused while this one runs, joined with the same key; and what it left undone is another one's to do."""
        try:
            self.stage.start_undo(self.edited)
        finally:
            if self.stage.turn.id != self.first.id:
                self.stage.cancel_turn()
            self.stage._turn = self.first

    def the_same_undo(self) -> None:
        assert self.stage.start_undo(self.edited, idempotency_key="once").id == self.first.id

    def take_its_course(self) -> None:
        super().take_its_course()
        self.stage._turn = self.first

    def check(self) -> None:
        assert not [bug for machine in self.machines for bug in machine.unexpected_errors]
        events = self.stage.events()
        invariants.check_log(self.stage.entries(), events)
        invariants.check_calls(events)
        assert self.stage.claim() is None
        assert "open" not in self.stage.turn_row()
        self.check_page()
        self.check_note()
        invariants.check_next_prompt(self.stage)

    def check_page(self) -> None:
        """What is said to be undone is; what is said to stay stays, unless nobody could tell."""
        told, journal = undo_report(self.stage), journal_entries(self.stage, self.edited)
        skipped = {one.effect_key: one.reason for one in told.skipped}
        mine = {entry.edit.effect_key for entry in journal if entry.mark and entry.mark.by == self.first.id}
        assert set(told.undone) | set(skipped) == {entry.edit.effect_key for entry in journal}
        assert set(told.undone) == {
            entry.edit.effect_key for entry in journal if entry.state == "undone" and entry.edit.effect_key in mine
        }
        asked = Counter(request.undoes for request in self.stage.tool_requests())
        assert all(count == 1 for count in asked.values()), "an inverse was asked for twice"
        unknown = {key for key, reason in skipped.items() if "look whether" in reason or reason == "Not here."}
        gone = self.undone_on_the_page()
        assert gone - unknown == set(told.undone) - unknown
        if not skipped:
            assert self.editor.page == PAGE

    def undone_on_the_page(self) -> set[str]:
        """Effect keys of the edits of which nothing is to be seen."""
        page, turn = self.editor.page, self.edited.id
        seen = {f"{turn}/1/0": "n1" in page, f"{turn}/1/1": "a" not in page, f"{turn}/2/0": "n2" in page}
        return {key for key, is_there in seen.items() if not is_there}

    def check_note(self) -> None:
        notes = [message for message in self.stage.load_messages() if message.turn == self.first.id]
        assert all(note.role == "user" for note in notes)
        assert len(notes) <= 1
        assert bool(notes) >= bool(undo_report(self.stage).undone)


class DisturbedEditing(DisturbedUndo):
    """The same edits while they are made, by a turn that anything may happen to."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.baked = Counter()
        self.editor = Editor(stage)
        self.edited = self.first = stage.start_turn("Edit", revision=self.editor.revision)
        self.script_edits()
        self.machines = [StateMachine(stage)]
        self.answers = self.editor.answers
        self.wakes = [self.machine.wake]

    def script_edits(self) -> None:
        insert = {"parentId": "root", "html": "<p>x</p>"}
        self.stage.script_replies(
            reply_with_calls(tool_call_block("insertHtml", **insert), tool_call_block("deleteNode", nodeId="a"))
        )
        self.stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **insert)), "Done.")

    def check(self) -> None:
        """What was told as done stands in the journal, once; and all of it can be taken back, unless the page was
        edited by a call whose answer came too late, or behind that of another tab.
        """
        assert not [bug for machine in self.machines for bug in machine.unexpected_errors]
        invariants.check_invariants(self.stage, next_prompt=False)
        told = {event.tool_call_id for event in self.stage.events() if isinstance(event, ToolResultEvent) and event.ok}
        journal = journal_entries(self.stage, self.edited)
        assert {entry.edit.tool_call_id for entry in journal} == told
        assert len(journal) == len(told)
        if journal and self.editor.acted_effect_keys == {entry.edit.effect_key for entry in journal}:
            self.stage.start_undo(self.edited)
            self.editor.finish()
            assert {entry.state for entry in journal_entries(self.stage, self.edited)} == {"undone"}
            assert self.editor.page == PAGE
        invariants.check_next_prompt(self.stage)
