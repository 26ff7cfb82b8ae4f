"""Rows, as text and as JSON."""

import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_OUTPUT = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True)
class ResultRow:
    """`met` is None where there is no target. `numbers` is everything measured, for whoever looks closer."""

    key: str
    title: str
    target: str
    result: str
    is_met: bool | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "what": self.title,
            "target": self.target,
            "result": self.result,
            "met": self.is_met,
        } | ({"numbers": self.numbers} if self.numbers else {})


def format_table(rows: list[ResultRow]) -> str:
    head = ResultRow("", "what", "target", "result")
    widths = [max(len(getattr(row, name)) for row in [head, *rows]) for name in ("title", "target", "result")]
    lines = [_line(head, widths), "  ".join("-" * width for width in (*widths, 4))]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _line(row: ResultRow, widths: list[int]) -> str:
    verdict = {True: "ok", False: "MISSED", None: ""}[row.is_met]
    cells = [cell.ljust(width) for cell, width in zip((row.title, row.target, row.result), widths, strict=True)]
    return "  ".join([*cells, verdict]).rstrip()


def write_results(rows: list[ResultRow], about: dict[str, Any], path: Path = DEFAULT_OUTPUT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": usable_cpu_count(), "python": platform.python_version(), "system": platform.system()}
    whole = about | {"machine": machine, "rows": [row.to_json() for row in rows]}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def usable_cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
