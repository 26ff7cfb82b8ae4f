"""Print the result rows as a table, and write them as JSON."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_OUTPUT = Path(__file__).parent / "results" / "latest.json"
VERDICTS = {True: "ok", False: "MISSED", None: ""}


@dataclass(frozen=True)
class ResultRow:
    key: str
    title: str
    target: str
    result: str
    is_met: bool | None = None
    """None where there is no target."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """Everything that was measured, in more detail than `result`."""

    def to_json(self) -> dict[str, Any]:
        members = {
            "key": self.key,
            "what": self.title,
            "target": self.target,
            "result": self.result,
            "met": self.is_met,
        }
        return members | ({"numbers": self.numbers} if self.numbers else {})

    @property
    def cells(self) -> tuple[str, str, str]:
        return self.title, self.target, self.result


def format_table(rows: Sequence[ResultRow]) -> str:
    head = ResultRow("", "what", "target", "result")
    widths = [max(map(len, column)) for column in zip(*(row.cells for row in (head, *rows)), strict=True)]
    rule = "  ".join("-" * width for width in (*widths, 4))
    return "\n".join([_format_line(head, widths), rule, *(_format_line(row, widths) for row in rows)])


def _format_line(row: ResultRow, widths: list[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row.cells, widths, strict=True)]
    return "  ".join([*cells, VERDICTS[row.is_met]]).rstrip()


def write_results(rows: Sequence[ResultRow], run: dict[str, Any], path: Path = DEFAULT_OUTPUT) -> None:
    """Write the rows with the members that describe the run, and the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": usable_cpu_count(), "python": platform.python_version(), "system": platform.system()}
    document = run | {"machine": machine, "rows": [row.to_json() for row in rows]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def usable_cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
