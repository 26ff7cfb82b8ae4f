"""Mutants: the product without one rule of its protocol. The judge must notice that each of them is missing.

Most rules are conditions of writes, so most mutants drop the condition of the writes to one kind of row.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

from fermata.turns.round import run_turn_steps
from fermata.turns.turn_log import TurnEnded
from fermata.usage.budgets.budget_accounts import BudgetDate
from fermata.usage.rollups.rollup_version import read_editions
from tests.chaos.mutations import Mutation, change, drop_condition, replace, together

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


def _run_and_raise_supersession(resources: Any, invocation: Any, connection: Any = None) -> None:
    try:
        context = run_turn_steps.open_turn_context(resources, invocation)
        if context is not None:
            run_turn_steps._run_steps(context, connection)
    except TurnEnded:
        context = None
    if context is None:
        resources.workflow.resume_execution(invocation.token, "finish")


def forget_supersession(log: Any) -> None:
    if log.state.phase == "ended":
        raise TurnEnded


def _record_start_in_memory(sender: Any, _writer: Any) -> None:
    sender._is_sent = True


def _record_failure_in_memory(sender: Any, _writer: Any, _error: Any) -> None:
    sender._failed_count += 1
    sender._is_sent = False


def _charge_in_the_month_of_the_hold(build: Callable[..., Any]) -> Callable[..., Any]:
    def build_updates(table: str, pk: str, costs: Any, *, hold: str = "", hold_month: str = "", shard: int = 0) -> Any:
        if hold and costs:
            costs = {BudgetDate(hold_month, hold.split("#")[2]): sum(costs.values())}
        return build(table, pk, costs, hold=hold, hold_month=hold_month, shard=shard)

    return build_updates


def _keep_hold_at_the_end(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda resources, tenant, turn, usages, **_: build(resources, tenant, turn, usages)


def _hold_before_start(commit: Callable[..., Any]) -> Callable[..., Any]:
    def commit_apart(
        resources: Any, turn: Any, state: Any, *writes: Any, hold_writes: Any = (), count_writes: Any = ()
    ) -> Any:
        if hold_writes:
            resources.tables.write_items(*hold_writes)
        return commit(resources, turn, state, *writes, count_writes=count_writes)

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


def _build_always(build: Callable[..., Any]) -> Callable[..., Any]:
    """Build the write that `build` builds, without its condition."""

    def build_unconditionally(*given: Any, **named: Any) -> Any:
        members = {"if_absent": False} if hasattr(build(*given, **named), "if_absent") else {}
        return dataclasses.replace(build(*given, **named), condition="", **members)

    return build_unconditionally


def _read_once(resources: Any, tenant: str, read: Callable[[Any], Any]) -> Any:
    return read(read_editions(resources, tenant)[0])


def _sort_oldest_first(iterate: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: iter(sorted(iterate(*given), key=lambda entry: entry.key))


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
    "a lost race is not final": replace(f"{LOG}._check_may_write", forget_supersession),
    "a pause changes whatever its version is": drop_condition("bridges", "p#"),
    "a superseded function fails": replace(
        "tests.chaos.platform_invocations.run_turn_steps", _run_and_raise_supersession
    ),
    # a conversation has one turn at a time
    "a claim is taken from the turn that has it": drop_condition("conversations", "meta"),
    "a conversation is created whatever is there": change(
        "fermata.conversations.conversation_store.Put", _build_always
    ),
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
    "announced work begins although the turn has ended": replace(
        "fermata.turns.round.stream_writer.StreamWriter.check_log", _never
    ),
    "open calls stay open when a turn ends": replace("fermata.turns.end.end_turn.close_calls", _never),
    "nobody resumes a held turn that is answered": replace(
        "fermata.turns.recover.recover_turn._resume_answered_hold", _never
    ),
    "a reader that returns is not noted": replace("fermata.turns.read.abandonment.mark_reader_present", _never),
    "nobody recovers": NOBODY_RECOVERS,
    "a turn counts whatever others count": drop_condition("bridges", "counts"),
    "a turn that has ended counts on": replace("fermata.turns.end.end_turn.build_turn_removals", _nothing),
    # functions, executions and their time
    "no heartbeat is sent": replace("fermata.turns.round.heartbeat.Heartbeat.send_if_due", _never),
    "a cancelled turn leaves its paused execution": together(
        replace("fermata.turns.end.stop_turn.finish_paused_execution", _never),
        replace("fermata.turns.recover.recover_turn.finish_paused_execution", _never),
    ),
    # budgets
    "a hold is taken whatever others have taken": change(f"{HOLDS}.build_hold_update", _build_always),
    "an account is opened again": change(f"{HOLDS}.build_opening_update", _build_always),
    "a hold is never settled": replace(f"{HOLDS}.build_settlement_writes", lambda *_, **__: []),
    "a turn keeps its hold when it ends": change(f"{HOLDS}.build_settlement_writes", _keep_hold_at_the_end),
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
    "an audit does not look whether its edition is over": together(
        replace("fermata.usage.audit.audit_from_rollups.read_from_current_edition", _read_once),
        replace("fermata.usage.rollups.rollup_version.read_from_current_edition", _read_once),
    ),
    "a rebuild does not wait for the index": replace("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0),
    # settings
    "a credential changes whatever its revision is": drop_condition("settings", "credential#"),
    "a default changes whatever its version is": drop_condition("settings", "default#"),
    # undo
    "the oldest edit is undone first": change(
        "fermata.turns.undo.undo_round.iter_journal_newest_first", _sort_oldest_first
    ),
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
    "an ended turn goes on": 0,
    "an entry that others wrote is not read": 4,
    "an entry of others is taken for the own one": 1,
    "a lost race is not final": 35,
    "a pause changes whatever its version is": 13,
    "a superseded function fails": 18,
    "a claim is taken from the turn that has it": 6,
    "a conversation is created whatever is there": 0,
    "the same prompt starts another turn": 0,
    "the same undo starts another turn": 12,
    "a repeated prompt fetches its snapshot": 1,
    "a repeated answer fetches its snapshot": 11,
    "a repeated answer is another answer": 1,
    "a request is sent before the log says so": 1,
    "a repeated request has no row": 41,
    "a dead request is not estimated": 11,
    "an ended request is not estimated": 2,
    "text of a dead attempt stays": 3,
    "announced work begins although the turn has ended": 31,
    "open calls stay open when a turn ends": 5,
    "nobody resumes a held turn that is answered": 7,
    "a reader that returns is not noted": 39,
    "nobody recovers": 7,
    "a turn counts whatever others count": 1,
    "a turn that has ended counts on": 0,
    "no heartbeat is sent": 27,
    "a cancelled turn leaves its paused execution": 4,
    "a hold is taken whatever others have taken": 47,
    "an account is opened again": 1,
    "a hold is never settled": 0,
    "a turn keeps its hold when it ends": 1,
    "a cost counts in the month of its hold": 31,
    "a hold is taken before the turn starts": 15,
    "a row is counted whenever the stream delivers it": 0,
    "rollups change whatever their version is": 29,
    "the edition changes whatever its version is": 0,
    "an audit does not look whether its edition is over": 23,
    "a rebuild does not wait for the index": 23,
    "a credential changes whatever its revision is": 2,
    "a default changes whatever its version is": 2,
    "the oldest edit is undone first": 12,
    "an undone undo changes nothing behind it": 23,
    "calls behind a failed one are requested": 37,
    "a mark knows of its newest call only": 12,
}
"""The first seed that shows that the rule is missing."""
