"""Judge money: the ledger is what providers were sent, row by row; accounts and audits are the ledger."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.chaos.account_recorder import add_up_account
from tests.chaos.evidence import Evidence, Row, ServedRequest
from tests.chaos.judge.find_rows import LoggedEvent, read_log, turn_of

MAX_UNSENT_MS = 15_000
"""How long after its announcement a request may still be unsent: a slow answer of AWS, and clocks that differ."""


def is_request_row(row: Row) -> bool:
    return "#turn#" in row["pk"] and row["sk"].startswith("r0")


def name_of(row: Row) -> str:
    return f"{row['turn']}.{int(row['round'])}.{int(row['attempt'])}"


def judge_ledger(evidence: Evidence) -> Iterator[str]:
    """Each request that was sent has its row, and there is no row of one that was not."""
    rows: dict[str, list[Row]] = defaultdict(list)
    served: dict[str, list[ServedRequest]] = defaultdict(list)
    for row in evidence.usage:
        if is_request_row(row):
            rows[name_of(row)].append(row)
    for request in evidence.served:
        served[request.name].append(request)
    for name in sorted(rows.keys() | served.keys()):
        yield from judge_request(evidence, name, rows[name], served[name])


def judge_request(evidence: Evidence, name: str, rows: list[Row], served: list[ServedRequest]) -> Iterator[str]:
    """Compare the rows of one attempt with the requests that were sent in its name."""
    if len(rows) == len(served) + 1:
        unsent = next((row for row in rows if may_be_unsent(evidence, row)), None)
        rows = [row for row in rows if row is not unsent]
    if len(rows) != len(served):
        shown = [(row["sk"], row["outcome"]) for row in rows]
        yield f"request {name}: {len(served)} were sent, in the ledger are {shown}"
        return
    reported = [(request.prompt_tokens, request.completion_tokens) for request in served if request.is_final]
    for row in rows:
        tokens = (int(row["prompt"]), int(row["completion"]))
        if row["outcome"] == "ok" and not row["estimated"] and tokens not in reported:
            yield f"request {name}: {tokens} tokens are in the ledger, the provider reported {reported}"
        if row["billable"] and row["outcome"] not in ("ok", "cancelled"):
            yield f"request {name}: it failed as {row['outcome']} and is billable"


def may_be_unsent(evidence: Evidence, row: Row) -> bool:
    """Return whether a row may be of a request that was announced and not sent.

    The log says that a request is sent before it is. In between its function may be killed or frozen, or the turn may
    be ended or taken by others. Whoever finds the announcement then writes an estimate, which costs the user nothing.
    So the row is excused only if it is such an estimate, nothing of the attempt follows its announcement in the log,
    and either its function was struck, or what ended the attempt came right after it.
    """
    if not row["estimated"] or row["billable"] or row["completion"] or row["tried"]:
        return False
    if not row["conversation"]:  # of no stored turn: it is announced by its mark
        return bool(row["outcome"] == "died")
    announcement, following = find_announcement(evidence, row["turn"], int(row["round"]), int(row["attempt"]))
    if announcement is None or following is None or following.event["type"] in ("text", "reasoning", "requestFailed"):
        return False
    return is_of_struck_function(evidence, announcement) or following.at_ms - announcement.at_ms < MAX_UNSENT_MS


def is_of_struck_function(evidence: Evidence, announcement: LoggedEvent) -> bool:
    owner = announcement.event.get("owner") or ""
    return owner.partition("/")[0] in evidence.struck_requests


def find_announcement(
    evidence: Evidence, turn: str, number: int, attempt: int
) -> tuple[LoggedEvent | None, LoggedEvent | None]:
    """Return the last announcement of an attempt, with the owner of the attempt, and the event that follows it."""
    log = read_log(evidence, turn)
    starts = [at for at in range(len(log)) if _starts_round(log[at], number) and not _is_withdrawn(log, at)]
    if attempt > len(starts):
        return None, None
    first = announced = starts[attempt - 1]
    for at in range(first + 1, starts[attempt] if attempt < len(starts) else len(log)):
        if log[at].event["type"] == "requestStarted":
            announced = at
    owner = log[first].event.get("owner")
    announcement = LoggedEvent(log[announced].number, {"owner": owner}, log[announced].at_ms)
    return announcement, log[announced + 1] if announced + 1 < len(log) else None


def _starts_round(logged: LoggedEvent, number: int) -> bool:
    return logged.event["type"] == "roundStarted" and logged.event["round"] == number


def _is_withdrawn(log: list[LoggedEvent], at: int) -> bool:
    """Return whether the log says right behind a start that its request was not sent. Such a start has no number."""
    following = log[at + 1].event if at + 1 < len(log) else {"type": ""}
    return following["type"] == "requestFailed" and following["code"] == "not_sent"


def judge_accounts(evidence: Evidence) -> Iterator[str]:
    """A budget's accounts have what its rows cost, by month and by day, and hold nothing when nothing runs."""
    costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in evidence.usage:
        if is_request_row(row) and row.get("budgeted"):
            costs[row["at"][:7], "spent"] += row["cost"]
            costs[row["at"][:7], f"spent_{row['at'][8:10]}"] += row["cost"]
    items = [row for row in evidence.bridges if row["pk"].endswith("#budget#tenant")]
    months = {row["sk"][:7] for row in items}
    accounts = {month: add_up_account(row for row in items if row["sk"][:7] == month) for month in months}
    for (month, name), cost in sorted(costs.items()):
        counted = accounts.get(month, {}).get(name, Decimal(0))
        if counted != cost:
            yield f"the account of {month} has {name} {counted}, the ledger {cost}"
    for month, account in accounts.items():
        for name, value in account.items():
            if name.startswith("x#") or (name.startswith("held") and value):
                yield f"the account of {month} still holds {name}: {value}"
            if name.startswith("spent") and value and not costs.get((month, name)):
                yield f"the account of {month} has {name} {value}, and the ledger nothing"


def judge_audits(evidence: Evidence) -> Iterator[str]:
    """The last audit shows the ledger, and no audit shows less than an earlier one."""
    total = int(sum(row["prompt"] + row["completion"] for row in evidence.usage if is_request_row(row)))
    for earlier, later in zip(evidence.audits, evidence.audits[1:], strict=False):
        if later < earlier:
            yield f"an audit shows {later} tokens after one that showed {earlier}"
    if evidence.audits and evidence.audits[-1] != total:
        yield f"the last audit shows {evidence.audits[-1]} tokens, the ledger has {total}"
    ended = {row["turn"] for row in evidence.usage if "#ended#" in row["pk"]}
    started = {turn_of(row) for row in evidence.bridges if row["sk"] == "turn"}
    yield from (f"turn {turn} has no row of its end in the ledger" for turn in sorted(started - ended))
