"""Simulate an editor with revisions and inverses (docs/revisions-and-undo.md). Its page consists of named texts.

editor = Editor(stage)
editor.run_editing_turn(["insertHtml"], ["deleteNode", "deleteNode"])     # a turn of two replies and three edits
editor.page                                                               # {"a": "A", …}
"""

import hashlib
import itertools
import json
from typing import Any

from fermata.domain.events import TerminalEvent, UndoReport
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
        """Whether any change by another client is a conflict, wherever on the page it is."""
        self._results: dict[str, Result] = {}

    @property
    def revision(self) -> str:
        return hashlib.sha256(json.dumps(self.page, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def acted_effect_keys(self) -> set[str]:
        """The effect keys of the requests it carried out or refused."""
        return set(self._results)

    def run_editing_turn(self, *replies: list[str], **prompt: Any) -> Turn:
        """Run a turn whose model makes these calls, reply by reply, and then finishes."""
        turn = self.stage.start_turn(revision=self.revision, **prompt)
        node_ids = iter(sorted(PAGE))
        for names in replies:
            self.stage.script_replies(reply_with_calls(*(self._call(name, node_ids) for name in names)))
        self.stage.script_replies("Done.")
        self.finish()
        return turn

    def _call(self, name: str, node_ids: Any) -> Any:
        match name:
            case "deleteNode":
                return tool_call_block(name, nodeId=next(node_ids))
            case "insertHtml":
                return tool_call_block(name, parentId="root", html="<p>x</p>")
            case _:
                return tool_call_block(name, nodeId="d")

    def finish(self) -> None:
        """Answer every request until the turn has ended."""
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
        if key not in self._results:
            self._results[key] = self._run_tool(request)
        return self._results[key]

    def _run_tool(self, request: Result) -> Result:
        name = request["toolName"]
        arguments = request["input"]
        if name == "getNodeHtml":
            return {"ok": True, "data": self.page.get(arguments["nodeId"]), "revision": self.revision}
        if self.is_strict and request.get("revision", self.revision) != self.revision:
            return self.make_conflict()
        return self._apply(self._make_patch(name, arguments))

    def make_conflict(self) -> Result:
        return {"ok": False, "conflict": True, "error": "Somebody was here.", "revision": self.revision}

    def _make_patch(self, name: str, arguments: Result) -> Result:
        match name:
            case "insertHtml":
                return {f"n{next(self.ids)}": arguments["html"]}
            case "deleteNode":
                return {arguments["nodeId"]: None}
            case _:
                return dict(arguments["patch"])

    def _apply(self, patch: Result) -> Result:
        inverse = {name: self.page.get(name) for name in patch}
        for name, text in patch.items():
            if text is None:
                self.page.pop(name, None)
            else:
                self.page[name] = text
        return {
            "ok": True,
            "data": {"nodeIds": list(patch)},
            "revision": self.revision,
            "inverse": [{"tool": "restore", "input": {"patch": inverse}}],
        }


def journal_entries(stage: Stage, turn: Turn) -> list[edit_journal.JournalEntry]:
    """Return the journal of a turn, the oldest edit first."""
    return edit_journal.list_journal_entries(stage.resources, turn.tenant, turn.id)[::-1]


def journal_states(stage: Stage, turn: Turn) -> list[str]:
    return [entry.state for entry in journal_entries(stage, turn)]


def undo_report(stage: Stage) -> UndoReport:
    """Return the report in the last event of the stage's turn, which is an undo."""
    end = stage.events()[-1]
    assert isinstance(end, TerminalEvent)
    assert end.report is not None
    return end.report
