"""Rows, as text and as JSON."""

import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LATEST = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True)
class Row:
    """`met` is None where there is no target. `numbers` is everything measured, for whoever looks closer."""

    key: str
    what: str
    target: str
    result: str
    met: bool | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        return {"key": self.key, "what": self.what, "target": self.target, "result": self.result, "met": self.met} | (
            {"numbers": self.numbers} if self.numbers else {}
        )


def shown(rows: list[Row]) -> str:
    head = Row("", "what", "target", "result")
    widths = [max(len(getattr(row, name)) for row in [head, *rows]) for name in ("what", "target", "result")]
    lines = [_line(head, widths), "  ".join("-" * width for width in (*widths, 4))]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _line(row: Row, widths: list[int]) -> str:
    verdict = {True: "ok", False: "MISSED", None: ""}[row.met]
    cells = [cell.ljust(width) for cell, width in zip((row.what, row.target, row.result), widths, strict=True)]
    return "  ".join([*cells, verdict]).rstrip()


def write(rows: list[Row], about: dict[str, Any], path: Path = LATEST) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": cpus(), "python": platform.python_version(), "system": platform.system()}
    whole = about | {"machine": machine, "rows": [row.wire() for row in rows]}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
