"""An editor that takes part in editing safety (docs/editing.md): a page of named texts, and somebody who may change it.

editor = Editor(stage)
editor.edits(["insertHtml"], ["deleteNode", "deleteNode"])     # a whole turn: two replies, three edits
editor.page                                                    # {"a": "A", …}
"""

import hashlib
import itertools
import json
from typing import Any

from fermata.domain.events import DoneEvent, ErrorEvent, UndoReport
from fermata.turns import edit_journal
from fermata.turns.turn import Turn
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

PAGE = {"a": "A", "b": "B", "c": "C", "d": "D"}
Result = dict[str, Any]


class Editor:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.page: dict[str, str] = dict(PAGE)
        self.answers: list[tuple[str, Result]] = []
        self.ids = itertools.count(1)
        self.is_strict = True
        """Whether any change by somebody else is a conflict, wherever on the page it was."""
        self._acted: dict[str, Result] = {}

    @property
    def revision(self) -> str:
        return hashlib.sha256(json.dumps(self.page, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def acted_effect_keys(self) -> set[str]:
        """Effect keys of what it did, or refused."""
        return set(self._acted)

    def run_editing_turn(self, *replies: list[str], **prompt: Any) -> Turn:
        """A turn whose model makes these calls, reply by reply, and then is done."""
        turn = self.stage.start_turn(revision=self.revision, **prompt)
        doomed = iter(sorted(PAGE))
        for names in replies:
            self.stage.script_replies(reply_with_calls(*(self._call(name, doomed) for name in names)))
        self.stage.script_replies("Done.")
        self.finish()
        return turn

    def _call(self, name: str, doomed: Any) -> Any:
        match name:
            case "deleteNode":
                return tool_call_block(name, nodeId=next(doomed))
            case "insertHtml":
                return tool_call_block(name, parentId="root", html="<p>x</p>")
            case _:
                return tool_call_block(name, nodeId="d")

    def finish(self) -> None:
        """Answer whatever is asked, until the turn is over."""
        while self.stage.run_workflow() == "waiting":
            self.answer_pending()

    def answer_pending(self) -> None:
        for request in self.stage.show_turn()["pending"]:
            self.send_result(request, self.apply_request(request))

    def send_result(self, request: Result, result: Result) -> None:
        self.answers.append((request["requestId"], result))
        self.stage.answer_request(result, request["requestId"])

    def apply_request(self, request: Result) -> Result:
        key = request["effectKey"]
        if key not in self._acted:
            self._acted[key] = self._act(request)
        return self._acted[key]

    def _act(self, request: Result) -> Result:
        name, given = request["toolName"], request["input"]
        if name == "getNodeHtml":
            return {"ok": True, "data": self.page.get(given["nodeId"]), "revision": self.revision}
        if self.is_strict and request.get("revision", self.revision) != self.revision:
            return self.make_conflict()
        return self._apply(self._patch(name, given))

    def make_conflict(self) -> Result:
        return {"ok": False, "conflict": True, "error": "Somebody was here.", "revision": self.revision}

    def _patch(self, name: str, given: Result) -> Result:
        match name:
            case "insertHtml":
                return {f"n{next(self.ids)}": given["html"]}
            case "deleteNode":
                return {given["nodeId"]: None}
            case _:
                return dict(given["patch"])

    def _apply(self, patch: Result) -> Result:
        back = {name: self.page.get(name) for name in patch}
        for name, text in patch.items():
            if text is None:
                self.page.pop(name, None)
            else:
                self.page[name] = text
        return {
            "ok": True,
            "data": {"nodeIds": list(patch)},
            "revision": self.revision,
            "inverse": [{"tool": "restore", "input": {"patch": back}}],
        }


def journal_entries(stage: Stage, turn: Turn) -> list[edit_journal.JournalEntry]:
    """The journal, the oldest edit first."""
    return edit_journal.list_journal_entries(stage.resources, turn.tenant, turn.id)[::-1]


def journal_states(stage: Stage, turn: Turn) -> list[str]:
    return [entry.state for entry in journal_entries(stage, turn)]


def undo_report(stage: Stage) -> UndoReport:
    """What the stage's turn, an undo, says of itself at its end."""
    end = stage.events()[-1]
    assert isinstance(end, DoneEvent | ErrorEvent) or end.type == "cancelled"
    assert end.report is not None
    return end.report
