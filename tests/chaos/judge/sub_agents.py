"""Judge sub-agents: each call has one child, one answer that is the child's, and no child outlives its turn."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from tests.chaos.evidence import Event, Evidence
from tests.chaos.judge.find_rows import read_log, turn_of
from tests.chaos.judge.ledger_accounts_audits import is_of_struck_function, is_request_row

CLOSED_CALL_TEXT = "The turn ended before this call was answered."
MAX_ORPHAN_SECONDS = 120.0
"""How long after the end of its turn a sub-agent's may go on: a round under way, a sweep and its grace."""
MAX_UNDISTURBED_ORPHAN_SECONDS = 5.0
MOST_IN_A_ROW = 5
"""Agents that ask each other after the agent of the user's turn."""


def judge_sub_agents(evidence: Evidence) -> Iterator[str]:
    parents = dict(_iter_parents(evidence))
    turns = sorted(turn_of(row) for row in evidence.bridges if row["sk"] == "turn")
    logs = {turn: [logged.event for logged in read_log(evidence, turn)] for turn in turns}
    named = Counter(event["bridgeId"] for log in logs.values() for event in log if event["type"] == "subAgentStarted")
    for child in sorted(named.keys() | parents.keys()):
        if named[child] != 1 or child not in parents:
            yield f"sub-agent {child} is named {named[child]} times, and stored {int(child in parents)} times"
    for turn, log in logs.items():
        yield from (f"turn {turn}: {problem}" for problem in _judge_answers(log, logs))
        yield from (f"turn {turn}: {problem}" for problem in _judge_usage(evidence, turn, log, parents))
    for child, parent in parents.items():
        yield from _judge_orphan(evidence, child, parent)
        if (depth := _count_ancestors(parents, child)) > MOST_IN_A_ROW:
            yield f"sub-agent {child} is asked by {depth} agents in a row"


def _iter_parents(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for row in evidence.bridges:
        parent = json.loads(row["data"]).get("parent") if row["sk"] == "turn" else None
        if parent:
            yield turn_of(row), str(parent["turn"])


def _count_ancestors(parents: dict[str, str], child: str) -> int:
    count = 0
    while child in parents:
        child, count = parents[child], count + 1
    return count


def _judge_answers(log: list[Event], logs: dict[str, list[Event]]) -> Iterator[str]:
    """A call is answered once, with a success only if the sub-agent was done."""
    results: dict[str, list[Event]] = defaultdict(list)
    for event in log:
        if event["type"] == "toolResult":
            results[event["toolCallId"]].append(event)
    for event in log:
        if event["type"] != "subAgentStarted":
            continue
        given, end = results[event["toolCallId"]], logs.get(event["bridgeId"], [{"type": "nothing"}])[-1]
        if len(given) != 1:
            yield f"the call of sub-agent {event['bridgeId']} has {len(given)} results"
        elif given[0]["ok"] and end["type"] != "done":
            yield f"sub-agent {event['bridgeId']} ended as {end['type']}, and its call has succeeded"


def _judge_usage(evidence: Evidence, turn: str, log: list[Event], parents: dict[str, str]) -> Iterator[str]:
    """The usage of a turn has that of the sub-agents that have answered it, and no other."""
    usage = next((event for event in log if event["type"] == "usage"), None)
    if usage is None:
        return
    counted = sum(_sum_own_tokens(evidence, one) for one in (turn, *_iter_answered(evidence, turn, parents)))
    shown = Decimal(usage["promptTokens"] + usage["completionTokens"])
    if shown != counted:
        yield f"its usage is {shown} tokens, the ledger has {counted} of it and its sub-agents"


def _iter_answered(evidence: Evidence, turn: str, parents: dict[str, str]) -> Iterator[str]:
    """Yield the sub-agents, in all depths, whose end was written before that of the turn that has asked."""
    log = read_log(evidence, turn)
    open_calls = _find_closed_calls([logged.event for logged in log])
    for logged in log:
        event = logged.event
        if event["type"] == "subAgentStarted" and event["toolCallId"] not in open_calls:
            yield event["bridgeId"]
            yield from _iter_answered(evidence, event["bridgeId"], parents)


def _find_closed_calls(events: list[Event]) -> set[str]:
    """Return the calls that the end of their turn has closed: their results come right before the usage."""
    closed: set[str] = set()
    usage = next((index for index, event in enumerate(events) if event["type"] == "usage"), len(events))
    for event in reversed(events[:usage]):
        if event["type"] != "toolResult" or event.get("error") != CLOSED_CALL_TEXT:
            break
        closed.add(event["toolCallId"])
    return closed


def _sum_own_tokens(evidence: Evidence, turn: str) -> Decimal:
    rows: list[Any] = [row for row in evidence.usage if is_request_row(row) and row["turn"] == turn]
    return sum((row["prompt"] + row["completion"] for row in rows), Decimal(0))


def _judge_orphan(evidence: Evidence, child: str, parent: str) -> Iterator[str]:
    own, asking = read_log(evidence, child), read_log(evidence, parent)
    late = (own[-1].at_ms - asking[-1].at_ms) / 1000
    is_struck = any(is_of_struck_function(evidence, logged) for logged in own)
    limit = MAX_UNDISTURBED_ORPHAN_SECONDS if evidence.is_undisturbed else MAX_ORPHAN_SECONDS
    if late > limit and not is_struck:
        yield f"sub-agent {child} went on for {late:.0f} s after the end of its turn"
