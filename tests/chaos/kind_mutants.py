"""Mutants of what only some kinds of simulations have: each drops one rule, and the judge of its kind notices that."""

import itertools
import json
from collections.abc import Callable
from typing import Any

from fermata.agents.definitions.agent_list import read_agent_list
from fermata.aws.dynamodb_items_and_writes import Delete
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.events import DoneEvent
from fermata.mcp_sources import mcp_tool_caller
from fermata.plans.drafts.pending_plan import PENDING_KEY, PendingPlan
from fermata.turns.generate.request_mark import REQUEST_SORT_KEY
from fermata.usage.ledger.ledger_store import ledger_partition
from tests.chaos.mutations import Mutation, change, drop_condition, replace, together

DELIVER = "fermata.turns.webhooks.deliver_entry"
MCP = "fermata.mcp_sources.mcp_tool_caller"
HOOKS = "fermata.turns.hooks.call_hooks"
MARK = "fermata.turns.generate.request_mark"
PENDING = "fermata.plans.drafts.pending_plan"
SUBMIT = "fermata.plans.submit_plan"
MONTHS = "fermata.limits.monthly_messages.MonthlyMessages.build_writes"
_numbers = itertools.count()


def _nothing(*_: Any, **__: Any) -> tuple[Any, ...]:
    return ()


def _never(*_: Any, **__: Any) -> None:
    return None


def _take_answer_last(take: Callable[..., Any]) -> Callable[..., Any]:
    """Take the answer of a response when its delivery is stored."""

    def take_later(*given: Any) -> None:
        _answers.append(lambda: take(*given))

    return take_later


def _record_attempt_first(record: Callable[..., Any]) -> Callable[..., Any]:
    def record_and_take(*given: Any) -> None:
        answers, _answers[:] = [*_answers], []
        record(*given)
        for take in answers:
            take()

    return record_and_take


_answers: list[Callable[[], Any]] = []


def _load_whenever(resources: Any, location: Any) -> PendingPlan | None:
    """Return the plan that waits, also after its hour."""
    item = resources.tables.get_item(resources.settings.conversations_table, location.pk, PENDING_KEY)
    return PendingPlan.from_wire(json.loads(item["plan"])) if item else None


def _count_apart(build: Callable[..., Any]) -> Callable[..., Any]:
    """Count a message before its turn starts."""

    def count(month: Any) -> tuple[Any, ...]:
        month.resources.tables.write_items(*build(month))
        return ()

    return count


def _count_workspace_only(list_keys: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: list_keys(*given)[:1]


def _call_failures_cancelled(read: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: "cancelled" if read(*given) == "error" else read(*given)


def _open_newest(open_agent: Callable[..., Any]) -> Callable[..., Any]:
    """Open a sub-agent as it was pushed last."""

    def open_newest(resources: Any, parent: Any, scope: str, version: str) -> Any:
        newest = read_agent_list(resources, parent.tenant).agents[read_agent_id(scope)].version
        return open_agent(resources, parent, scope, newest)

    return open_newest


def _delete_mark(resources: Any, tenant: str, turn: str, sent: int) -> Delete:
    """Let nothing be left of a mark."""
    key = resources.settings.bridges_table, ledger_partition(tenant, turn), REQUEST_SORT_KEY
    return Delete(*key, "sent = :sent", {":sent": sent})


class _NoEvent:
    """Nothing is one of these."""


def _write_apart(build: Callable[..., Any]) -> Callable[..., Any]:
    """Let a chain go on by a write of its own."""

    def write(resources: Any, *given: Any) -> tuple[Any, ...]:
        writes = build(resources, *given)
        if writes:
            resources.tables.write_items(*writes)
        return ()

    return write


def _change_point(call: Callable[..., Any]) -> Callable[..., Any]:
    """Tell an endpoint another key each time it is called."""
    return lambda caller, name, key, *given: call(caller, name, f"{key}/{next(_numbers)}", *given)


def _change_key(call: Callable[..., Any]) -> Callable[..., Any]:
    """Tell the server another key each time a call is made."""
    return lambda *given: call(*given[:-1], f"{given[-1]}/{next(_numbers)}")


def _run_started_again(advance: Callable[..., Any]) -> Callable[..., Any]:
    """Take a call that a dead function has started for one that waits."""

    def advance_again(context: Any, pause: Any) -> Any:
        for call in pause.calls:
            if call.state == "started":
                pause = pause.with_call(call.model_copy(update={"state": "waiting"}))
        return advance(context, pause)

    return advance_again


KIND_MUTANTS: dict[str, dict[str, tuple[int, Mutation]]] = {
    "webhooks": {
        "nobody queues what was not queued": (8, replace("tests.chaos.webhook_receivers.resend_outbox", _never)),
        "an answer counts after its delivery": (
            1,
            together(
                change(f"{DELIVER}.take_answer", _take_answer_last),
                change(f"{DELIVER}.record_attempt", _record_attempt_first),
            ),
        ),
        "an event is sent whenever its message comes": (0, replace(f"{DELIVER}.read_delivery", _never)),
        "what is not taken is given up": (
            1,
            replace("fermata.turns.webhooks.record_attempt.get_next_wait", _never),
        ),
        "a workspace is told as much at once as there is": (
            1,
            replace("fermata.turns.webhooks.delivery_slots.DELIVERIES_AT_ONCE", 99),
        ),
        "a late copy takes a slot again": (
            0,
            replace("fermata.turns.webhooks.delivery_slots.refuse_late_copy", _never),
        ),
    },
    "generate": {
        "a request whose function has died is in no ledger": (
            1,
            replace("fermata.turns.recover.recover_open_turns.account_for_dead_request", _never),
        ),
        "what is sent again is not marked": (2, replace(f"{MARK}.RequestMark.note_next", _never)),
        "a mark goes with its request": (0, replace(f"{MARK}._build_close", _delete_mark)),
        "a request that nobody was answered is billable": (
            1,
            replace("fermata.turns.generate.unstored_turn._DEAD", DoneEvent()),
        ),
    },
    "held-plans": {
        "a plan is taken whatever became of it": (
            0,
            together(drop_condition("conversations", PENDING_KEY), drop_condition("bridges", "a#")),
        ),
        "a draft changes whatever its version is": (0, drop_condition("conversations", "d#head")),
        "a plan is applied to whatever is there": (
            36,
            together(
                replace(f"{SUBMIT}.digest_targets", lambda *_: ""),
                replace("fermata.plans.apply_plan.digest_targets", lambda *_: ""),
            ),
        ),
        "a plan waits for ever": (
            1,
            together(
                replace(f"{PENDING}.load_pending_plan", _load_whenever),
                replace(f"{SUBMIT}.load_pending_plan", _load_whenever),
            ),
        ),
        "a decision about a plan is in no trail": (
            0,
            replace("fermata.turns.approvals.decide_held_plan.build_trail_writes", _nothing),
        ),
        "a repeated edit is another one": (
            18,
            replace("fermata.planner_api.handlers._read_effect_key", lambda _context: f"{next(_numbers)}"),
        ),
    },
    "plan-chains": {
        "a step is planned again": (
            7,
            replace("fermata.plans.drafts.multi_step_request.require_unplanned_step", _never),
        ),
        "a chain goes on before its plan is accepted": (0, change(f"{SUBMIT}.build_chain_writes", _write_apart)),
        "a chain goes on while its plan waits": (
            3,
            replace("fermata.planner_api.route_chat.load_pending_plan", _never),
        ),
    },
    "agent-hooks": {
        "what an endpoint at the end returns is lost": (
            0,
            replace("fermata.turns.hooks.finish_hooks.read_data_parts", _nothing),
        ),
        "endpoints at the end are called afterwards too": (
            0,
            replace("fermata.turns.hooks.hook_points.FinishHooksRunEvent", _NoEvent),
        ),
        "an endpoint is called by another key": (0, change(f"{HOOKS}.HookCaller.call_endpoint", _change_point)),
        "nobody calls what was not queued": (1, replace("tests.chaos.webhook_receivers.resend_outbox", _never)),
    },
    "plan-uses": {
        "a month counts whatever it includes": (75, drop_condition("bridges", "month#")),
        "a message counts before its turn starts": (0, change(MONTHS, _count_apart)),
        "a message does not count": (0, replace(MONTHS, _nothing)),
        "a user's own messages do not count": (
            0,
            change("fermata.limits.metered_uses._list_month_keys", _count_workspace_only),
        ),
        "a message that has failed counts again": (
            1,
            change("fermata.client_protocols.client_turns.read_end_type", _call_failures_cancelled),
        ),
    },
    "tool-sources": {
        "a session that was lost fails a call": (3, replace(f"{MCP}._call", mcp_tool_caller._call_in_session)),
        "a call that was lost counts as not made": (21, replace(f"{MCP}.UNKNOWN_EFFECT_NOTE", "")),
        "a call has another key": (0, change(f"{MCP}._call_in_session", _change_key)),
        "a call that a dead function has started is made again": (
            57,
            change("fermata.turns.round.run_turn_steps.run_server_calls", _run_started_again),
        ),
        "sessions stay open": (0, replace("fermata.turns.round.run_turn_steps.end_mcp_sessions", _never)),
        "a sub-agent is opened as it was pushed last": (
            2,
            change("fermata.turns.sub_agents.child_start._open_agent", _open_newest),
        ),
    },
}
"""By kind and rule: how many seeds after the first of its kind shows it, and how it is dropped."""
