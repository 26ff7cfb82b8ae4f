"""Judge what a plan includes in a month: each message that runs counts once, and not too many run."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.conversations import read_text
from tests.chaos.judge.find_rows import read_log
from tests.chaos.studio_users import KEY_LIMITS, MONTH_LIMITS, SentMessage

MONTH_KEY = "month#"
SOURCES = {"chatMessages": "from.studio", "apiMessages": "from.api"}
MAX_BOUNDARY_MS = 30_000
"""How long after its turn was named a message may be counted, in the next month perhaps."""
EXPECTED_STATUSES = {200, 409, 429, 500, 502, 503}


def judge_plan_uses(evidence: Evidence, sent: Sequence[SentMessage], key_limits: Mapping[str, int]) -> Iterator[str]:
    months = [row for row in evidence.bridges if row["sk"].startswith(MONTH_KEY)]
    of_workspace = [row for row in months if row["pk"].endswith("#limits#months")]
    of_users = [row for row in months if "#limits#user#" in row["pk"]]
    turns = {str(row["pk"]).rpartition("#turn#")[2]: json.loads(row["data"]) for row in _iter_studio_turns(evidence)}
    found = _find_turns(evidence, turns)
    yield from _judge_messages(evidence, sent, found)
    yield from (f"turn {turn} has no message" for turn in sorted(turns.keys() - set().union(*found.values())))
    turns = {turn: turns[turn] for own in found.values() for turn in _iter_counting(evidence, own)}
    for meter, limit in MONTH_LIMITS.items():
        own = [turn for turn in turns.values() if _is_of_meter(turn, meter)]
        yield from _judge_months(meter, limit, of_workspace, own)
        yield from _judge_users(meter, of_users, own)
        refused = [message.name for message in sent if message.meter == meter and message.is_refused]
        if refused and not _is_any_month_used(meter, limit, of_workspace, of_users):
            yield f"{refused} were refused because the {meter} of the month are used, and they are not"
    for user, limit in key_limits.items():
        months_of_key = Counter(
            month for turn in turns.values() if turn["user"] == user and (month := _find_month(turn))
        )
        yield from (
            f"key {user} has {count} turns in {month}" for month, count in months_of_key.items() if count > limit
        )
    for row in of_workspace:
        for meter, source in SOURCES.items():
            if row.get(meter, 0) != row.get(source, 0):
                yield f"{row['sk']} counts {row.get(meter, 0)} {meter}, of which {row.get(source, 0)} have a source"


def _iter_studio_turns(evidence: Evidence) -> Iterator[Row]:
    return (row for row in evidence.bridges if row["sk"] == "turn" and json.loads(row["data"])["scope"] == "studio")


def _is_of_meter(turn: Any, meter: str) -> bool:
    return (turn["user"] in ("ada", "bob")) == (meter == "chatMessages")


def _find_turns(evidence: Evidence, turns: dict[str, Any]) -> dict[str, list[str]]:
    """Return the turns of each message, the oldest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in evidence.conversations:
        if row["sk"].startswith("m#") and row["role"] == "user" and row["turn"] in turns:
            found[read_text(evidence, row).removeprefix("[turn ").partition(" ")[0]].append(str(row["turn"]))
    return {name: sorted(own, key=lambda turn: int(turns[turn]["started_ms"])) for name, own in found.items()}


def _iter_counting(evidence: Evidence, own: Sequence[str]) -> Iterator[str]:
    """Yield the turns of one message that count: not those that follow one which has failed."""
    yield from own[:1]
    yield from (turn for before, turn in pairwise(own) if read_log(evidence, before)[-1].event["type"] != "error")


def _judge_messages(evidence: Evidence, sent: Sequence[SentMessage], found: dict[str, list[str]]) -> Iterator[str]:
    """A message that was accepted has a turn, and another one only after that has failed or was cancelled."""
    for message in sent:
        own = found.get(message.name, [])
        ends = [read_log(evidence, turn)[-1].event["type"] for turn in own]
        if "done" in ends[:-1] or (message.is_accepted and not own):
            yield f"message {message.name} was answered {message.statuses}, and has the turns {own}: {ends}"
        if {*message.statuses} - EXPECTED_STATUSES:
            yield f"message {message.name} was answered {message.statuses}: {message.error}"


def _judge_months(meter: str, limit: int, rows: list[Row], turns: list[Any]) -> Iterator[str]:
    """Each month counts the turns that began in it. One that began as it ended may count in the next."""
    counted = {row["sk"].removeprefix(MONTH_KEY): int(row.get(meter, 0)) for row in rows}
    if sum(counted.values()) != len(turns):
        yield f"the months count {counted} {meter}, and {len(turns)} turns of them have begun"
    sure = Counter(month for turn in turns if (month := _find_month(turn)))
    for month, count in counted.items():
        if count > limit:
            yield f"{month} counts {count} {meter}, and the plan includes {limit}"
        if count < sure[month]:
            yield f"{month} counts {count} {meter}, and {sure[month]} turns of them began in it"


def _find_month(turn: Any) -> str:
    """Return the month in which a turn certainly counts; empty for one that began as a month ended."""
    month = _month_of(turn, 0)
    return month if month == _month_of(turn, MAX_BOUNDARY_MS) else ""


def _month_of(turn: Any, later_ms: int) -> str:
    return datetime.fromtimestamp((turn["started_ms"] + later_ms) / 1000, UTC).strftime("%Y-%m")


def _judge_users(meter: str, rows: list[Row], turns: list[Any]) -> Iterator[str]:
    """Each user and key counts its own."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["pk"]] += int(row.get(meter, 0))
    expected = Counter(turn["user"] for turn in turns)
    if sorted((+counts).values()) != sorted(expected.values()):
        yield f"users count {sorted(counts.values())} {meter}, and their turns are {dict(expected)}"


def _is_any_month_used(meter: str, limit: int, of_workspace: list[Row], of_users: list[Row]) -> bool:
    is_workspace_full = any(row.get(meter, 0) >= limit for row in of_workspace)
    return is_workspace_full or any(row.get(meter, 0) >= min(KEY_LIMITS) for row in of_users if meter == "apiMessages")
