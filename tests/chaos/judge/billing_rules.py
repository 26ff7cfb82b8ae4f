"""Judge charges: the price of each row, whose it is, which turns are billable, and what a budget lets pass."""

import json
from collections.abc import Iterator
from decimal import Decimal

from tests.chaos.evidence import TERMINAL_TYPES, Evidence, Row
from tests.chaos.judge.find_rows import read_log, turn_of
from tests.chaos.judge.ledger_accounts_audits import is_request_row, name_of

MILLION = Decimal(1_000_000)
BILLABLE_CODES = ("refused", "no_answer", "budget_exhausted")
"""Errors that neither the service nor its provider has caused."""
SCOPE = "site"


def judge_billing_rules(evidence: Evidence) -> Iterator[str]:
    served = {request.name: request for request in evidence.served}
    for row in filter(is_request_row, evidence.usage):
        name = name_of(row)
        yield from (f"request {name}: {problem}" for problem in judge_price(evidence, row))
        yield from (f"request {name}: {problem}" for problem in judge_owner(evidence, row))
        request = served.get(name)
        asked = (request.provider, request.model) if request and request.model else None
        if asked and asked != (row["provider"], row["model"]):
            yield f"request {name}: it was sent to {asked}, in the ledger are {row['provider']} and {row['model']}"
    for row in evidence.usage:
        if "#ended#" in row["pk"]:
            yield from (f"turn {row['turn']}: {problem}" for problem in judge_outcome(evidence, row))


def judge_price(evidence: Evidence, row: Row) -> Iterator[str]:
    """A row costs its tokens times the price that its provider has."""
    if row["provider"] in evidence.prices:
        per_prompt, per_completion = evidence.prices[row["provider"]]
        cost = (row["prompt"] * per_prompt + row["completion"] * per_completion) / MILLION
        if row["cost"] != cost:
            yield f"its tokens cost {cost} USD, in the ledger is {row['cost']}"


def judge_owner(evidence: Evidence, row: Row) -> Iterator[str]:
    owner, scope = evidence.owners.get(row["conversation"]), evidence.scopes.get(row["conversation"], SCOPE)
    if evidence.child_scope and scope != SCOPE and _is_of_sub_agent(evidence, row["turn"]):
        scope = evidence.child_scope
    if evidence.owners and (row["user"], row["scope"]) != (owner, scope):
        yield f"it was of {owner} in {scope}, in the ledger it is of {row['user']} in {row['scope']}"


def _is_of_sub_agent(evidence: Evidence, turn: str) -> bool:
    rows = (row for row in evidence.bridges if row["sk"] == "turn" and turn_of(row) == turn)
    return any(json.loads(row["data"]).get("parent") for row in rows)


def judge_outcome(evidence: Evidence, row: Row) -> Iterator[str]:
    """The ledger says of a turn what its log does, and who has caused an error pays for it."""
    events = [logged.event for logged in read_log(evidence, row["turn"])]
    if not any(event.get("undoes") for event in events):  # any user of the workspace may undo what another one has done
        yield from judge_owner(evidence, row)
    ends = [event for event in events if event["type"] in TERMINAL_TYPES]
    for end in ends[:1]:
        code = (end.get("code") or "") if end["type"] == "error" else ""
        if (row["how"], row["code"]) != (end["type"], code):
            yield f"it ended as {end['type']} {code}, in the ledger as {row['how']} {row['code']}"
        if row["billable"] != (end["type"] != "error" or code in BILLABLE_CODES):
            yield f"it ended as {end['type']} {code}, and billable is {row['billable']}"


def judge_holds(evidence: Evidence) -> Iterator[str]:
    """No hold is taken that the budget does not cover, and no request under a budget is sent without one."""
    for taken in evidence.holds_taken:
        spent, held = taken.account.get("spent", Decimal(0)), taken.account.get("held", Decimal(0))
        if taken.account[taken.hold] > 0 and spent + held > taken.limit:
            yield f"hold {taken.hold} was taken: spent {spent} and held {held} are more than {taken.limit}"
        holds = [value for name, value in taken.account.items() if name.startswith("x#")]
        if held != sum(holds):
            yield f"hold {taken.hold} was taken: the account says that it holds {held}, its holds are {holds}"
    known = {taken.hold.rpartition("#")[2] for taken in evidence.holds_taken}
    for request in evidence.served:
        if any(evidence.prices.get(request.provider, ())) and request.name not in known:
            yield f"request {request.name} was sent under a budget, and no hold was taken for it"
