"""Find rows of a turn in the evidence, and read its log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.chaos.evidence import Event, Evidence, Row


@dataclass(frozen=True)
class LoggedEvent:
    number: int
    event: Event
    at_ms: int
    """When its writer appended it, by the clock of that process."""


def find_entries(evidence: Evidence, bridge: str) -> list[Row]:
    """Return the log entries of a turn in their order."""
    found = [row for row in evidence.bridges if row["pk"].endswith(f"#turn#{bridge}") and row["sk"].startswith("e#")]
    return sorted(found, key=lambda row: str(row["sk"]))


def read_log(evidence: Evidence, bridge: str) -> list[LoggedEvent]:
    return [event for row in find_entries(evidence, bridge) for event in _read_entry(evidence, row)]


def _read_entry(evidence: Evidence, row: Row) -> Iterator[LoggedEvent]:
    text: Any = row["data"] if "data" in row else evidence.blobs[row["blob"]]
    for offset, event in enumerate(json.loads(text)):
        yield LoggedEvent(int(row["sk"][2:]) + offset, event, int(row["at"]))


def turn_of(row: Row) -> str:
    return str(row["pk"]).rpartition("#turn#")[2]
