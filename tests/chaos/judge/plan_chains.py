"""Judge chains of plans: each step is planned once, after the one before it, and the session knows how far it is."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.chaos.chain_users import ChainUsers
from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.conversations import read_text
from tests.chaos.judge.find_rows import read_log, turn_of
from tests.chaos.judge.held_plans import MAX_CLOCK_SECONDS, judge_held_plans

PROMPT = re.compile(r"\[turn (\w+) rounds")
ACCEPTED_STATES = ("applied", "plan_ready")


@dataclass(frozen=True)
class AcceptedPlan:
    """A plan that was applied, or held for a person.

    Attributes:
        turn: That has made it.
        at: When it was accepted.
        decided_at: When it did not wait any more; infinite for one that still does, or whose hour is over.
    """

    turn: str
    at: float
    decided_at: float


def judge_plan_chains(evidence: Evidence, users: ChainUsers) -> Iterator[str]:
    yield from judge_held_plans(evidence, users)
    rows = [row for row in evidence.conversations if row["pk"].endswith(f"#c#{users.conversation}")]
    accepted = _find_accepted_plans(evidence, rows)
    started = {turn_of(row): json.loads(row["data"])["started_ms"] / 1000 for row in _iter_turn_rows(evidence)}
    for chain in users.chains:
        yield from judge_steps(chain, accepted, started)
    yield from judge_continuations(evidence, users, rows)
    for row in rows:
        if row["sk"] == "d#chain":
            yield from judge_place(json.loads(row["chain"]), users, accepted)


def _iter_turn_rows(evidence: Evidence) -> Iterator[Row]:
    return (row for row in evidence.bridges if row["sk"] == "turn")


def _find_accepted_plans(evidence: Evidence, rows: list[Row]) -> Mapping[str, dict[str, AcceptedPlan]]:
    """Return the plans that were accepted, by what they say and by their turns."""
    names = _name_turns(evidence, rows)
    found: dict[str, dict[str, AcceptedPlan]] = defaultdict(dict)
    for row in rows:
        entry = json.loads(row["entry"]) if row["sk"].startswith("d#h#") else {}
        if entry.get("kind") == "plan":
            at = _read_instant(entry["at"])
            found[names[row["turn"]]][row["turn"]] = AcceptedPlan(row["turn"], at, at)
    for row in evidence.bridges:
        if row["sk"].startswith("a#"):
            data = json.loads(row["data"])
            decided = _read_instant(json.loads(row["decision"])["decided_at"]) if row.get("decision") else float("inf")
            plan = AcceptedPlan(turn_of(row), _read_instant(data["requested_at"]), decided)
            found[names[plan.turn]][plan.turn] = plan
    return found


def _name_turns(evidence: Evidence, rows: list[Row]) -> dict[str, str]:
    """Return what each turn was asked to plan."""
    prompts = [row for row in rows if row["sk"].startswith("m#") and row["role"] == "user"]
    return {row["turn"]: _find_name(read_text(evidence, row)) for row in prompts}


def _find_name(text: str) -> str:
    found = PROMPT.search(text)
    return found[1] if found else ""


def _read_instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def judge_steps(
    chain: list[str], accepted: Mapping[str, dict[str, AcceptedPlan]], started: Mapping[str, float]
) -> Iterator[str]:
    """A step has one plan, and its turn begins when the plan before it does not wait any more."""
    for before, name in zip(["", *chain], chain, strict=False):
        plans = [*accepted.get(name, {}).values()]
        if len(plans) > 1:
            yield f"step {name} was planned by {len(plans)} turns: {[plan.turn for plan in plans]}"
        earlier = [*accepted.get(before, {}).values()] if before else []
        for plan in plans if before else []:
            if not earlier:
                yield f"step {name} was planned, and {before} before it was not"
            elif started[plan.turn] < min(earlier[0].decided_at, earlier[0].at + 3600) - MAX_CLOCK_SECONDS:
                yield f"step {name} was begun while the plan of {before} waited"


def judge_continuations(evidence: Evidence, users: ChainUsers, rows: list[Row]) -> Iterator[str]:
    """Who is told that steps are left is told which, and how many."""
    places = {name: (chain, index) for chain in users.chains for index, name in enumerate(chain)}
    for turn, name in _name_turns(evidence, rows).items():
        for logged in read_log(evidence, turn):
            outcome: dict[str, Any] = logged.event.get("outcome") or {} if logged.event["type"] == "editPlan" else {}
            told = outcome.get("continuation")
            if name not in places or outcome.get("status") not in ACCEPTED_STATES or not told:
                continue
            chain, index = places[name]
            expected = (index + 1, len(chain), chain[index + 1] if index + 1 < len(chain) else "")
            if (told["currentStep"], told["totalSteps"], _find_name(told["nextStepLabel"])) != expected:
                yield f"the plan of {name} says {told}, and {expected} is true"


def judge_place(
    stored: dict[str, Any], users: ChainUsers, accepted: Mapping[str, dict[str, AcceptedPlan]]
) -> Iterator[str]:
    """The session knows which steps are left, and none is left out unless somebody has given the chain up."""
    chain = users.chains[-1]
    left = [_find_name(text) for text in stored["remaining"]]
    chain = next((one for one in users.chains if left and left[0] in one), chain)
    planned = [name for name in chain if name in accepted]
    is_given_up = any(one.user == "ada" and not one.is_agreed for one in users.decisions)
    if left and planned != chain[: len(chain) - len(left)]:
        yield f"the chain has {left} left, and {planned} were planned"
    if not left and planned and planned != chain and not is_given_up:
        yield f"the chain has nothing left, and only {planned} of {chain} were planned"
    if left and users.has_come_to_the_end and not is_given_up:
        yield f"the chain has {left} left, and its users were told that there is none"
