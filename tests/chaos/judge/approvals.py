"""Judge approvals: one decision each, about calls that ran only if they were approved, and all in an unbroken trail."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.approvers import SentDecision
from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.find_rows import read_log, turn_of


def judge_approvals(evidence: Evidence, sent: Sequence[SentDecision]) -> list[str]:
    outcomes: dict[str, str] = {}
    problems: list[str] = []
    for bridge in sorted({turn_of(row) for row in evidence.bridges if row["sk"] == "turn"}):
        problems += judge_calls_of_turn(evidence, bridge, outcomes)
    problems += judge_answers(outcomes, sent)
    problems += judge_rows(evidence, outcomes)
    problems += judge_trail(evidence, outcomes)
    return problems


def judge_calls_of_turn(evidence: Evidence, bridge: str, outcomes: dict[str, str]) -> Iterator[str]:
    """Each approval is decided once or ends with its turn, and its call is requested only after an approval."""
    log = [item.event for item in read_log(evidence, bridge)]
    asked = {event["toolCallId"]: event["approvalId"] for event in log if event["type"] == "approvalRequested"}
    decided = Counter(event["approvalId"] for event in log if event["type"] == "approvalDecided")
    yield from (f"approval {approval} was decided {count} times" for approval, count in decided.items() if count > 1)
    allowed: set[str] = set()
    for event in log:
        if event["type"] == "approvalDecided":
            outcomes[event["approvalId"]] = event["outcome"]
            if event["approved"]:
                allowed.add(event["toolCallId"])
        if event["type"] == "toolRequest" and event["toolCallId"] in asked and event["toolCallId"] not in allowed:
            yield f"call {event['toolCallId']} of turn {bridge} was requested without an approval"
    has_ended = log[-1]["type"] in ("done", "error", "cancelled")
    is_cancelled = log[-1]["type"] in ("error", "cancelled")
    open_ones = set(asked.values()) - decided.keys()
    if open_ones and not (has_ended and is_cancelled):
        yield f"turn {bridge} is {log[-1]['type']}, and {sorted(open_ones)} were never decided"


def judge_answers(outcomes: dict[str, str], sent: Sequence[SentDecision]) -> Iterator[str]:
    """Who was told that a decision counts was told the truth, and no other decision was accepted."""
    for decision in sent:
        if decision.status == 200:
            expected = "approved" if decision.is_approved else "denied"
            if outcomes.get(decision.approval) != expected:
                yield f"{decision} was accepted, and the outcome is {outcomes.get(decision.approval)}"
        elif decision.status not in (409, 404) and decision.status < 500:
            yield f"{decision} was answered in an unexpected way"
    accepted = {(decision.approval, decision.user) for decision in sent if decision.status == 200}
    by_approval = Counter(approval for approval, _ in accepted)
    yield from (f"two people decided about {approval}" for approval, count in by_approval.items() if count > 1)


def judge_rows(evidence: Evidence, outcomes: dict[str, str]) -> Iterator[str]:
    """The row of an approval says what the log says, and nothing is listed any more."""
    for row in evidence.bridges:
        if row["sk"].startswith("a#"):
            approval = json.loads(row["data"])["id"]
            expected = outcomes.get(approval, "cancelled")
            if row["state"] != expected:
                yield f"the row of approval {approval} says {row['state']}, its log {expected}"
            if "open" in row:
                yield f"approval {approval} is still listed"


def judge_trail(evidence: Evidence, outcomes: dict[str, str]) -> Iterator[str]:
    """The trail has an entry for each decision of a log and no other, each with the hash of the one before."""
    rows = [row for row in evidence.bridges if row["pk"].endswith("#trail") and row["sk"].startswith("d#")]
    previous = "0" * 64
    found: dict[str, str] = {}
    for number, row in enumerate(sorted(rows, key=_sort_key), 1):
        if int(row["number"]) != number or row["previous"] != previous:
            yield f"entry {number} of the trail does not follow the one before"
        previous = str(row["hash"])
        if previous != hashlib.sha256(f"{row['previous']}\n{row['data']}".encode()).hexdigest():
            yield f"entry {number} of the trail has a wrong hash"
        facts = json.loads(row["data"])
        if facts["approval"] in found:
            yield f"the trail has two entries about {facts['approval']}"
        found[facts["approval"]] = facts["outcome"]
    if found != outcomes:
        yield f"the trail and the logs differ in {sorted(set(found.items()) ^ set(outcomes.items()))}"


def _sort_key(row: Row) -> str:
    return str(row["sk"])
