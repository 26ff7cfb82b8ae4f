"""An editor that takes part in editing safety (docs/editing.md): a page of named texts, and somebody who may change it.

editor = Editor(stage)
editor.edits(["insertHtml"], ["deleteNode", "deleteNode"])     # a whole turn: two replies, three edits
editor.page                                                    # {"a": "A", …}
"""

import hashlib
import itertools
import json
from typing import Any

from fermata.turns import journal
from fermata.turns.turn import Turn
from fermata.words.events import Done, TurnError, UndoReport
from tests.unit.turns.stage import Stage, call, calls

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
    def acted(self) -> set[str]:
        """Effect keys of what it did, or refused."""
        return set(self._acted)

    def edits(self, *replies: list[str], **prompt: Any) -> Turn:
        """A turn whose model makes these calls, reply by reply, and then is done."""
        turn = self.stage.start(revision=self.revision, **prompt)
        doomed = iter(sorted(PAGE))
        for names in replies:
            self.stage.says(calls(*(self._call(name, doomed) for name in names)))
        self.stage.says("Done.")
        self.finish()
        return turn

    def _call(self, name: str, doomed: Any) -> Any:
        match name:
            case "deleteNode":
                return call(name, nodeId=next(doomed))
            case "insertHtml":
                return call(name, parentId="root", html="<p>x</p>")
            case _:
                return call(name, nodeId="d")

    def finish(self) -> None:
        """Answer whatever is asked, until the turn is over."""
        while self.stage.run() == "waiting":
            self.attend()

    def attend(self) -> None:
        for request in self.stage.look()["pending"]:
            self.send(request, self.act(request))

    def send(self, request: Result, result: Result) -> None:
        self.answers.append((request["requestId"], result))
        self.stage.answer(result, request["requestId"])

    def act(self, request: Result) -> Result:
        key = request["effectKey"]
        if key not in self._acted:
            self._acted[key] = self._act(request)
        return self._acted[key]

    def _act(self, request: Result) -> Result:
        name, given = request["toolName"], request["input"]
        if name == "getNodeHtml":
            return {"ok": True, "data": self.page.get(given["nodeId"]), "revision": self.revision}
        if self.is_strict and request.get("revision", self.revision) != self.revision:
            return self.conflict()
        return self._apply(self._patch(name, given))

    def conflict(self) -> Result:
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


def entries(stage: Stage, turn: Turn) -> list[journal.Entry]:
    """The journal, the oldest edit first."""
    return journal.everything(stage.desk, turn.tenant, turn.id)[::-1]


def states(stage: Stage, turn: Turn) -> list[str]:
    return [entry.state for entry in entries(stage, turn)]


def report(stage: Stage) -> UndoReport:
    """What the stage's turn, an undo, says of itself at its end."""
    end = stage.events()[-1]
    assert isinstance(end, Done | TurnError) or end.type == "cancelled"
    assert end.report is not None
    return end.report
