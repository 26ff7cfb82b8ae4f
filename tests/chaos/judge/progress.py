"""Judge progress: a turn goes on soon after an answer, and on a day without faults nothing is done twice or late."""

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.evidence import Evidence
from tests.chaos.judge.find_rows import read_log, turn_of
from tests.chaos.judge.ledger_accounts_audits import find_announcement, is_of_struck_function

MAX_SILENCE_SECONDS = 300.0
"""After an answer: a sweep and its grace, and an owner that stands still."""
MAX_LAG_SECONDS = 20.0
MAX_LATE_SECONDS = 5.0
"""How long after the end of its turn a request may be sent: half a second, slow calls, and clocks that differ."""


def judge_progress(evidence: Evidence) -> Iterator[str]:
    for bridge in sorted({turn_of(row) for row in evidence.bridges if row["sk"] == "turn"}):
        yield from (f"turn {bridge}: {problem}" for problem in judge_silence(evidence, bridge))
        if evidence.is_undisturbed:
            yield from (f"turn {bridge}: {problem}" for problem in judge_execution_ends(evidence, bridge))
    yield from judge_requests_after_the_end(evidence)
    if evidence.is_undisturbed:
        for request in evidence.served:
            if not request.name.endswith(".1"):
                yield f"request {request.name} was sent, and nothing had disturbed the first attempt"


def judge_requests_after_the_end(evidence: Evidence) -> Iterator[str]:
    """Nothing is sent for a turn that has been over for a while, unless its function stood still meanwhile.

    A request of no stored turn has no log.
    """
    for request in evidence.served:
        if not request.sent_at:
            continue
        turn, number, attempt = request.name.split(".")
        log = read_log(evidence, turn)
        late_seconds = request.sent_at - log[-1].at_ms / 1000 if log else 0.0
        if late_seconds > MAX_LATE_SECONDS:
            announcement, _ = find_announcement(evidence, turn, int(number), int(attempt))
            if announcement is None or not is_of_struck_function(evidence, announcement):
                yield f"request {request.name} was sent {late_seconds:.0f} s after the end of its turn"


def judge_silence(evidence: Evidence, bridge: str) -> Iterator[str]:
    """Nothing waits for long when the last call was answered. Before the answer of a sub-agent, its own log counts."""
    log = read_log(evidence, bridge)
    asked = {logged.event["toolCallId"] for logged in log if logged.event["type"] == "subAgentStarted"}
    for before, after in pairwise(log):
        if after.event["type"] == "toolResult" and after.event["toolCallId"] in asked:
            continue
        seconds = after.at_ms / 1000 - max(before.at_ms / 1000, evidence.calm_since)
        if before.event["type"] == "toolResult" and seconds > MAX_SILENCE_SECONDS:
            yield f"after event {before.number}, an answer, nothing happened for {seconds:.0f} s"


def judge_execution_ends(evidence: Evidence, bridge: str) -> Iterator[str]:
    """The executions of a turn end with it."""
    ended_at = read_log(evidence, bridge)[-1].at_ms / 1000
    for name, execution_ended_at in evidence.execution_ends.items():
        if name.startswith(bridge) and execution_ended_at - ended_at > MAX_LAG_SECONDS:
            yield f"its execution {name} ended {execution_ended_at - ended_at:.0f} s after it"
