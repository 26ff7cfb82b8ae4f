"""Judge reports of undos: each edit that was to be undone is in it once, and what it says is in the log."""

import json
from collections.abc import Iterator
from typing import Any

from tests.chaos.evidence import TERMINAL_TYPES, Event, Evidence
from tests.chaos.judge.find_rows import read_log, turn_of

NOT_REACHED = ("The undo ended before it reached this edit.", "The editor was asked to undo it and did not answer")


def judge_undo_reports(evidence: Evidence) -> Iterator[str]:
    turns = {turn_of(row): json.loads(row["data"]) for row in evidence.bridges if row["sk"] == "turn"}
    for bridge, pinned in turns.items():
        if pinned.get("undoes"):
            expected = list_edits(evidence, pinned["undoes"], pinned.get("through") or "")
            others = [
                other for other, its in turns.items() if other != bridge and its.get("undoes") == pinned["undoes"]
            ]
            by_others = {key for other in others for key in read_report(evidence, other)["undone"]}
            by_others |= list_edits_undone_from_elsewhere(evidence, pinned["undoes"], {bridge, *others})
            problems = judge_report(evidence, bridge, expected, by_others)
            yield from (f"undo {bridge}: {problem}" for problem in problems)


def read_report(evidence: Evidence, bridge: str) -> Any:
    ends = [logged.event for logged in read_log(evidence, bridge) if logged.event["type"] in TERMINAL_TYPES]
    return next((end["report"] for end in ends if end.get("report")), {"undone": [], "skipped": []})


def list_edits(evidence: Evidence, turn: str, oldest: str) -> list[str]:
    """Return the effect keys of a turn's edits from the oldest one on, the newest first."""
    rows = [row for row in evidence.bridges if turn_of(row) == turn and row["sk"].startswith("j#")]
    chosen = [row for row in rows if not row["sk"].endswith("#u") and row["sk"][2:] >= oldest]
    ordered = sorted(chosen, key=lambda row: str(row["sk"]), reverse=True)
    return [json.loads(row["data"])["effect_key"] for row in ordered]


def list_edits_undone_from_elsewhere(evidence: Evidence, turn: str, its_undos: set[str]) -> set[str]:
    """Return the effect keys of a turn's edits that an undo of another turn has taken back.

    The turn may be a redo. Whoever undoes what it has redone takes its own edits back too.
    """
    rows = {
        str(row["sk"]): json.loads(row["data"])
        for row in evidence.bridges
        if turn_of(row) == turn and "j#" in row["sk"]
    }
    marks = {key.removesuffix("#u"): mark for key, mark in rows.items() if key.endswith("#u")}
    return {rows[key]["effect_key"] for key, mark in marks.items() if key in rows and mark["by"] not in its_undos}


def judge_report(evidence: Evidence, bridge: str, expected: list[str], by_others: set[str]) -> Iterator[str]:
    """Compare a report with the edits to undo. It leaves out those that another undo has undone."""
    events = [logged.event for logged in read_log(evidence, bridge)]
    ends = [event for event in events if event["type"] in TERMINAL_TYPES]
    for end in ends[:1]:
        report = read_report(evidence, bridge)
        skipped = {edit.get("effectKey", edit.get("effect_key")): edit["reason"] for edit in report["skipped"]}
        undone: list[str] = report["undone"]
        named = [*undone, *skipped]
        is_complete = set(expected) - by_others <= set(named) <= set(expected)
        if not is_complete or len(named) != len(set(named)):
            yield f"its report has {undone} and {skipped}, the journal {expected}"
        if undone != [key for key in expected if key in undone]:
            yield f"its report has {undone}, and the newest edit is not the first"
        if end["type"] == "done":
            unreached = [key for key, reason in skipped.items() if reason.startswith(NOT_REACHED)]
            yield from (f"it is done, and {key} was not reached" for key in unreached)
        rounds = count_successful_rounds(events)
        if len(undone) > rounds:
            yield f"it reports {len(undone)} edits as undone, in {rounds} of its rounds calls succeeded"


def count_successful_rounds(events: list[Event]) -> int:
    number, successful = 0, set()
    for event in events:
        if event["type"] == "roundStarted":
            number = event["round"]
        elif event["type"] == "toolResult" and event["ok"]:
            successful.add(number)
    return len(successful)
