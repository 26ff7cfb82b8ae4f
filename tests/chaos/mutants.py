"""Mutants: the product without one rule of its protocol. The judge must notice that each of them is missing.

Most rules are conditions of writes, so most mutants drop the condition of the writes to one kind of row.
"""

import itertools
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws import dynamodb_client
from fermata.aws.dynamodb_items_and_writes import Write
from fermata.turns.turn_log import TurnEnded
from fermata.usage.budgets.budget_accounts import BudgetDate

Mutation = Callable[[pytest.MonkeyPatch], None]


def drop_condition(table: str, sort_key: str, *, keep_version: bool = False) -> Mutation:
    """Send writes to rows of one kind without their condition."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        build = dynamodb_client.build_write_request

        def build_without_condition(write: Write) -> tuple[str, dict[str, Any]]:
            operation, request = build(write)
            key = request.get("Item") or request["Key"]
            if operation != "ConditionCheck" and request["TableName"] == table and key["sk"]["S"].startswith(sort_key):
                request.pop("ConditionExpression", None)
                used = request.get("UpdateExpression", "")
                _drop_unused(request, "ExpressionAttributeValues", used)
                _drop_unused(request, "ExpressionAttributeNames", used)
            return operation, request

        patch.setattr(dynamodb_client, "build_write_request", build_without_condition)

    return mutate


def _drop_unused(request: dict[str, Any], member: str, expression: str) -> None:
    used = {name: value for name, value in request.get(member, {}).items() if name in expression}
    request.pop(member, None)
    if used:
        request[member] = used


def replace(target: str, value: Any) -> Mutation:
    """Put something else in the place of a function or attribute."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, value, raising=False)

    return mutate


def change(target: str, wrap: Callable[[Any], Any]) -> Mutation:
    """Put `wrap(what was there)` in the place of a function."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        module, _, name = target.rpartition(".")
        patch.setattr(target, wrap(getattr(pkgutil.resolve_name(module), name)))

    return mutate


def together(*mutations: Mutation) -> Mutation:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        for mutation in mutations:
            mutation(patch)

    return mutate


_numbers = itertools.count()
_ENTRY_ID = "the-same-for-all"


def _start_always(resources: Any, caller: Any, key: str, digest: str, start: Callable[[], Any]) -> Any:
    return start()


def _hash_never_alike(_result: object) -> str:
    return f"{next(_numbers)}"


def _never(*_: object, **__: object) -> None:
    return None


def _nothing(*_: object, **__: object) -> tuple[Any, ...]:
    return ()


def _forget_supersession(log: Any) -> None:
    if log.state.phase == "ended":
        raise TurnEnded


def _record_start_in_memory(sender: Any, _writer: Any) -> None:
    sender._is_sent = True


def _record_failure_in_memory(sender: Any, _writer: Any, _error: Any) -> None:
    sender._failed_count += 1
    sender._is_sent = False


def _charge_in_the_month_of_the_hold(build: Callable[..., Any]) -> Callable[..., Any]:
    def build_updates(table: str, pk: str, costs: Any, *, hold: str = "", hold_month: str = "") -> Any:
        if hold and costs:
            costs = {BudgetDate(hold_month, hold.split("#")[2]): sum(costs.values())}
        return build(table, pk, costs, hold=hold, hold_month=hold_month)

    return build_updates


def _keep_hold_at_the_end(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda resources, tenant, turn, usages, **_: build(resources, tenant, turn, usages)


def _hold_before_start(commit: Callable[..., Any]) -> Callable[..., Any]:
    def commit_apart(resources: Any, turn: Any, state: Any, *writes: Any, hold_writes: Any = ()) -> Any:
        if hold_writes:
            resources.tables.write_items(*hold_writes)
        return commit(resources, turn, state, *writes)

    return commit_apart


def _fetch_snapshot_first(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_turn(resources: Any, caller: Any, prompt: Any) -> Any:
        assert prompt.snapshot_content is not None
        return start(resources, caller, prompt)

    return start_turn


def _fetch_answer_snapshot_first(submit: Callable[..., Any]) -> Callable[..., Any]:
    def submit_result(resources: Any, caller: Any, *, snapshot: Any, **given: Any) -> Any:
        if snapshot is not None:
            snapshot.fetch()
        return submit(resources, caller, snapshot=snapshot, **given)

    return submit_result


NOBODY_RECOVERS = together(
    replace("tests.chaos.platform_invocations.recover_turn", _never),
    replace("fermata.turns.recover.recover_open_turns.recover_turn", _never),
    replace("fermata.turns.start.conversation_claim.recover_turn", _never),
)
REQUEST = "fermata.turns.round.model_request._RequestSender"
LOG = "fermata.turns.turn_log.TurnLog"
HOLDS = "fermata.usage.budgets.holds"

MUTANTS: dict[str, Mutation] = {
    # the log is the lock
    "an append overwrites the entry that is there": drop_condition("bridges", "e#"),
    "an ended turn goes on": replace(f"{LOG}._check_may_write", _never),
    "an entry that others wrote is not read": replace(f"{LOG}.accept_entry", _never),
    "an entry of others is taken for the own one": replace("fermata.turns.turn_log.new_id", lambda _size=21: _ENTRY_ID),
    "a lost race is not final": replace(f"{LOG}._check_may_write", _forget_supersession),
    "a pause changes whatever its version is": drop_condition("bridges", "p#"),
    # a conversation has one turn at a time
    "a claim is taken from the turn that has it": drop_condition("conversations", "meta"),
    # repeats
    "the same prompt starts another turn": replace("fermata.turns.start.start_turn.start_once", _start_always),
    "the same undo starts another turn": replace("fermata.turns.undo.start_undo.start_once", _start_always),
    "a repeated prompt fetches its snapshot": change("functions.stream_turns.app.start_turn", _fetch_snapshot_first),
    "a repeated answer fetches its snapshot": change(
        "functions.tool_result.app.submit_tool_result", _fetch_answer_snapshot_first
    ),
    "a repeated answer is another answer": replace(
        "fermata.turns.answer.submit_tool_result.hash_result", _hash_never_alike
    ),
    # requests and their rows
    "a request is sent before the log says so": replace(f"{REQUEST}._record_start", _record_start_in_memory),
    "a repeated request has no row": replace(f"{REQUEST}._record_failure", _record_failure_in_memory),
    "a dead request is not estimated": replace("fermata.turns.round.begin_round._estimate_open_request", _nothing),
    "an ended request is not estimated": replace(
        "fermata.turns.end.end_turn._EndCommit._request_usages", lambda end, _before: end._final_round.request_usages
    ),
    "text of a dead attempt stays": replace("fermata.turns.round.begin_round._build_retraction", _nothing),
    "open calls stay open when a turn ends": replace("fermata.turns.end.end_turn.build_closing_events", _nothing),
    "nobody recovers": NOBODY_RECOVERS,
    # budgets
    "a hold is never settled": replace("fermata.usage.usage_writes.build_settlement_writes", lambda *_, **__: []),
    "a turn keeps its hold when it ends": change(
        "fermata.usage.usage_writes.build_settlement_writes", _keep_hold_at_the_end
    ),
    "a cost counts in the month of its hold": change(
        f"{HOLDS}.build_spending_updates", _charge_in_the_month_of_the_hold
    ),
    "a hold is taken before the turn starts": change("fermata.turns.start.start_turn.commit_start", _hold_before_start),
    # rollups
    "a row is counted whenever the stream delivers it": replace(
        "fermata.usage.rollups.rollup_store._build_counted_marks", lambda *_: []
    ),
    "rollups change whatever their version is": together(
        drop_condition("usage", "20"), drop_condition("usage", "chat")
    ),
    "the edition changes whatever its version is": drop_condition("usage", "edition"),
    # undo
    "an undone undo changes nothing behind it": replace(
        "fermata.turns.undo.edit_marks.UndoStep._build_link_marks", _nothing
    ),
    "calls behind a failed one are requested": replace(
        "fermata.turns.answer.submit_tool_result.skip_remaining_calls", lambda pause, _call: pause
    ),
    "a mark knows of its newest call only": replace(
        "fermata.turns.edit_journal.EditMark.with_step",
        lambda mark, changed: mark.model_copy(update={"steps": (changed,)}),
    ),
}

CATCHING_SEEDS = {
    "an append overwrites the entry that is there": 2,
    "an ended turn goes on": 2,
    "an entry that others wrote is not read": 4,
    "an entry of others is taken for the own one": 4,
    "a lost race is not final": 84,
    "a pause changes whatever its version is": 13,
    "a claim is taken from the turn that has it": 6,
    "the same prompt starts another turn": 0,
    "the same undo starts another turn": 2,
    "a repeated prompt fetches its snapshot": 4,
    "a repeated answer fetches its snapshot": 0,
    "a repeated answer is another answer": 0,
    "a request is sent before the log says so": 0,
    "a repeated request has no row": 36,
    "a dead request is not estimated": 4,
    "an ended request is not estimated": 2,
    "text of a dead attempt stays": 4,
    "open calls stay open when a turn ends": 4,
    "nobody recovers": 19,
    "a hold is never settled": 0,
    "a turn keeps its hold when it ends": 52,
    "a cost counts in the month of its hold": 7,
    "a hold is taken before the turn starts": 7,
    "a row is counted whenever the stream delivers it": 7,
    "rollups change whatever their version is": 43,
    "the edition changes whatever its version is": 46,
    "an undone undo changes nothing behind it": 13,
    "calls behind a failed one are requested": 13,
    "a mark knows of its newest call only": 2,
}
"""The first seed that shows that the rule is missing."""
