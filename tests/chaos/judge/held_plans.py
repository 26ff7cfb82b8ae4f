"""Judge plans that wait for a person: each is applied once or never, as it was shown, and all are told the same."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.approvals import judge_trail
from tests.chaos.judge.conversations import read_text
from tests.chaos.planner_users import PLAN_SECONDS, PlanDecision, PlannerUsers

MAX_CLOCK_SECONDS = 5.0
"""Clocks that differ by two seconds each, and slow calls of AWS."""
STATES = {"applied": "approved", "dropped": "denied"}
EXPECTED_REFUSALS = {400, 404, 409}


@dataclass(frozen=True)
class DraftVersion:
    """What a version has changed."""

    number: int
    kind: str
    name: str
    at: float
    operations: tuple[dict[str, Any], ...]

    @property
    def headings(self) -> dict[str, str]:
        """What it says on the pages that it changes."""
        return {one["pageSlug"]: one["patch"]["heading"] for one in self.operations}


@dataclass(frozen=True)
class HeldPlan:
    """A plan as its approval's row has it."""

    id: str
    approval: str
    name: str
    state: str
    held_at: float


def judge_held_plans(evidence: Evidence, users: PlannerUsers) -> Iterator[str]:
    rows = [row for row in evidence.conversations if row["pk"].endswith(f"#c#{users.conversation}")]
    versions = sorted((_read_version(row) for row in rows if row["sk"].startswith("d#h#")), key=lambda one: one.number)
    plans = list(_iter_held_plans(evidence, rows))
    decisions = defaultdict[str, list[PlanDecision]](list)
    for decision in users.decisions:
        decisions[decision.plan].append(decision)
    yield from judge_versions(rows, versions)
    yield from judge_edits(users, versions)
    waiting = {str(row["id"]) for row in rows if row["sk"] == "d#plan"}
    for plan in plans:
        own = [version for version in versions if version.kind == "plan" and version.name == plan.name]
        yield from (
            f"plan {plan.name}: {problem}"
            for problem in judge_held_plan(plan, own, versions, decisions[plan.id], is_waiting=plan.id in waiting)
        )
    known = {plan.id for plan in plans}
    yield from (f"plan {one} was decided about, and has no approval" for one in sorted(decisions.keys() - known))
    yield from (f"{one} was answered in an unexpected way" for one in users.decisions if not _is_expected(one))
    decided = {plan.approval: plan.state for plan in plans if plan.state in STATES.values()}
    yield from judge_trail(evidence, decided)


def _read_version(row: Row) -> DraftVersion:
    entry, outcome = json.loads(row["entry"]), json.loads(row["outcome"])
    at = datetime.fromisoformat(entry["at"]).timestamp()
    operations = tuple(outcome.get("ops") or ())
    return DraftVersion(entry["version"], entry["kind"], entry["summary"], at, operations)


def _iter_held_plans(evidence: Evidence, rows: Sequence[Row]) -> Iterator[HeldPlan]:
    """Yield the plans that were held, whose approvals' ids end with theirs and begin with those of their turns."""
    prompts = [row for row in rows if row["sk"].startswith("m#") and row["role"] == "user"]
    names = {row["turn"]: read_text(evidence, row).removeprefix("[turn ").partition(" ")[0] for row in prompts}
    for row in evidence.bridges:
        if row["sk"].startswith("a#"):
            data = json.loads(row["data"])
            turn, *_, plan = data["id"].split(".")
            held_at = datetime.fromisoformat(data["requested_at"]).timestamp()
            yield HeldPlan(plan, data["id"], names[turn], str(row["state"]), held_at)


def judge_versions(rows: Sequence[Row], versions: Sequence[DraftVersion]) -> Iterator[str]:
    """Versions follow each other, and each page says what the last one has written there."""
    numbers = [version.number for version in versions]
    head = next(int(row["version"]) for row in rows if row["sk"] == "d#head")
    if numbers != list(range(1, head + 1)):
        yield f"the draft is at version {head}, and its history has {numbers}"
    written: dict[str, str] = {}
    for version in versions:
        written |= version.headings
    for row in rows:
        if row["sk"].startswith("d#p#"):
            (block,) = json.loads(row["page"])["blocks"]
            expected = written.get(row["slug"], "start")
            if block["props"]["heading"] != expected:
                yield f"page {row['slug']} says {block['props']['heading']}, and was changed to {expected} last"


def judge_edits(users: PlannerUsers, versions: Sequence[DraftVersion]) -> Iterator[str]:
    """An edit under a key is made once if it was answered with success, and never twice."""
    made = Counter(heading for version in versions if version.kind == "ops" for heading in version.headings.values())
    yield from (f"edit {name} was made {count} times" for name, count in made.items() if count > 1)
    yield from (f"edit {name} was answered, and never made" for name in users.edits if not made[name])


def judge_held_plan(
    plan: HeldPlan,
    own: Sequence[DraftVersion],
    versions: Sequence[DraftVersion],
    decisions: Sequence[PlanDecision],
    *,
    is_waiting: bool,
) -> Iterator[str]:
    """Compare what was answered about a plan with what became of it."""
    outcomes = {decision.outcome for decision in decisions}
    if len(own) > 1:
        yield f"it was applied {len(own)} times"
    if "applied" in outcomes and not own:
        yield "it was said to be applied, and the history does not have it"
    if "dropped" in outcomes and own:
        yield "it was said to be dropped, and was applied"
    if (plan.state == "approved") != bool(own):
        yield f"its approval is {plan.state}, and it was applied {len(own)} times"
    if "dropped" in outcomes and plan.state != "denied":
        yield f"it was dropped, and its approval is {plan.state}"
    if is_waiting and (own or plan.state != "waiting"):
        yield f"it waits, was applied {len(own)} times, and its approval is {plan.state}"
    for version in own:
        yield from _judge_application(plan, version, versions, decisions)


def _judge_application(
    plan: HeldPlan, version: DraftVersion, versions: Sequence[DraftVersion], decisions: Sequence[PlanDecision]
) -> Iterator[str]:
    """It is applied within its hour, as it was shown or as its approver has written it, to what it was made for."""
    said = {*version.headings.values()}
    others = {decision.heading for decision in decisions if decision.is_agreed and decision.heading}
    if len(said) != 1 or not said <= {plan.name} | others:
        yield f"it was applied as {said}"
    if version.at > plan.held_at + PLAN_SECONDS + MAX_CLOCK_SECONDS:
        yield f"it was applied {version.at - plan.held_at:.0f} s after it was made"
    between = [one for one in versions if one.number < version.number and one.at > plan.held_at + MAX_CLOCK_SECONDS]
    changed = [one for one in between if one.headings.keys() & version.headings.keys()]
    if changed:
        yield f"it was applied although {changed} had changed the same"
    if not any(decision.is_agreed for decision in decisions):
        yield "it was applied, and nobody has agreed"


def _is_expected(decision: PlanDecision) -> bool:
    return decision.status == 200 or decision.status >= 500 or decision.status in EXPECTED_REFUSALS
