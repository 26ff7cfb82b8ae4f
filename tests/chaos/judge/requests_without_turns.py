"""Judge requests to models that belong to no turn: each that was sent is marked before, and in the ledger once."""

from collections.abc import Iterator, Sequence

from tests.chaos.evidence import Evidence, Row, ServedRequest
from tests.chaos.generate_users import SentGeneration
from tests.chaos.judge.ledger_accounts_audits import is_request_row

MARK_KEY = "request"
EXPECTED_STATUSES = {200, 402, 429, 500, 502, 503}


def judge_requests_without_turns(evidence: Evidence, sent: Sequence[SentGeneration]) -> Iterator[str]:
    """The general judge compares numbers and prices of rows. This one looks at what they say."""
    for one in sent:
        served = [request for request in evidence.served if f"[turn {one.name} " in request.body]
        if one.status not in EXPECTED_STATUSES:
            yield f"request {one.name} was answered {one.status}"
        if served:
            yield from (f"request {one.name}: {problem}" for problem in _judge_served(evidence, one, served))


def _judge_served(evidence: Evidence, one: SentGeneration, served: Sequence[ServedRequest]) -> Iterator[str]:
    turns = {request.name.partition(".")[0] for request in served}
    if len(turns) != 1:
        yield f"it counts as {len(turns)} turns"
        return
    [turn] = turns
    rows = [row for row in evidence.usage if row.get("turn") == turn]
    requests = [row for row in rows if is_request_row(row)]
    ends = [row for row in rows if "#ended#" in row["pk"]]
    if [row["provider"] for row in ends] != [served[0].provider]:
        yield f"{len(ends)} rows say how it has ended"
        return
    yield from _judge_mark(evidence, turn, len(served))
    yield from _judge_answer(one, served, requests, ends[0])


def _judge_mark(evidence: Evidence, turn: str, served: int) -> Iterator[str]:
    """The mark counts what is sent before it is, and says nothing more once that is in the ledger."""
    marks = [row for row in evidence.bridges if row["pk"].endswith(f"#turn#{turn}") and row["sk"] == MARK_KEY]
    if len(marks) != 1 or int(marks[0]["sent"]) not in (served, served + 1):
        yield f"{served} requests were sent, and marked as {[int(mark['sent']) for mark in marks]}"
    yield from (f"its mark still has {sorted(mark)}" for mark in marks if mark.keys() & {"data", "open"})


def _judge_answer(
    one: SentGeneration, served: Sequence[ServedRequest], requests: Sequence[Row], end: Row
) -> Iterator[str]:
    """What was answered is billable, and has no estimate. What nobody was answered is not billable."""
    outcomes = [row["outcome"] for row in requests]
    if one.status == 200:
        if one.text != "".join(served[-1].words):
            yield f"it was answered {one.text!r}, and the model said {served[-1].words}"
        if outcomes.count("ok") != 1 or "died" in outcomes or (end["how"], end["billable"]) != ("done", True):
            yield f"it was answered, and in the ledger are {outcomes}, {end['how']}, billable {end['billable']}"
    if end["billable"] and "ok" not in outcomes:
        yield f"it is billable, and in the ledger are {outcomes}"
    if "died" in outcomes and (end["billable"] or end["code"] != "interrupted"):
        yield f"its function has died, and it ended as {end['how']} {end['code']}, billable {end['billable']}"
