"""The page of the simulated editors: cells, of which every edit makes its own, so that each can be told apart later.

An edit with the effect key `t/1/0` sets the cells `t/1/0|<step>|<part>`. Call `<step>` of its inverse removes the parts
of that step again. The inverse of such a call is one call, or one for each part. So the cells say of each call of an
inverse whether it stands: all parts are gone, none is, or some are.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.evidence import PageChange

Result = dict[str, Any]
READING_TOOLS = ("getNodeHtml",)


def draw(key: str, what: str, sides: int) -> int:
    """Return a number below `sides` that depends on the key alone, as if every editor drew the same."""
    return zlib.crc32(f"{what}/{key}".encode()) % sides


@dataclass
class Page:
    """Shared by all tabs. A request that comes again, or in two tabs, is carried out once."""

    cells: dict[str, str] = field(default_factory=dict)
    changes: list[PageChange] = field(default_factory=list)
    _results: dict[str, Result] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        return f"v{len(self.changes)}"

    def carry_out(self, request: dict[str, Any]) -> Result:
        key = request["effectKey"]
        if key not in self._results:
            self._results[key] = self._run(key, request["toolName"], request["input"])
        return self._results[key]

    def _run(self, key: str, tool: str, given: dict[str, Any]) -> Result:
        if tool in READING_TOOLS:
            return {"ok": True, "data": {"effect": key}, "revision": self.revision}
        if draw(key, "conflict", 14) == 0:
            return {"ok": False, "conflict": True, "error": "Somebody was here.", "revision": self.revision}
        if draw(key, "failure", 16) == 0:
            return {"ok": False, "error": "Not here.", "revision": self.revision}
        if tool == "restore":
            return self._change(key, given["patch"], self._build_opposites(key, given["patch"]))
        return self._edit(key)

    def _edit(self, key: str) -> Result:
        steps = 1 + draw(key, "steps", 3)
        parts = 1 + draw(key, "parts", 2)
        cells = [[f"{key}|{step}|{part}" for part in range(parts)] for step in range(steps)]
        inverse = [dict.fromkeys(step_cells) for step_cells in cells]
        return self._change(key, {cell: "on" for step_cells in cells for cell in step_cells}, inverse)

    def _build_opposites(self, key: str, patch: dict[str, str | None]) -> list[dict[str, str | None]]:
        opposite = {cell: self.cells.get(cell) for cell in patch}
        is_split = draw(key, "split", 3) == 0
        return [{cell: value} for cell, value in opposite.items()] if is_split else [opposite]

    def _change(self, key: str, patch: dict[str, str | None], inverse: list[dict[str, Any]]) -> Result:
        for cell, value in patch.items():
            if value is None:
                self.cells.pop(cell, None)
            else:
                self.cells[cell] = value
        self.changes.append(PageChange(key, dict(patch)))
        has_inverse = draw(key, "inverse", 16) != 0
        steps = [{"tool": "restore", "input": {"patch": step}} for step in inverse]
        return {
            "ok": True,
            "data": {"effect": key},
            "revision": self.revision,
            **({"inverse": steps} if has_inverse else {}),
        }
