"""Planted bugs: the product does something wrong with money, edits or what it keeps. The judge notices each."""

from collections.abc import Callable
from typing import Any

from fermata.domain.events import UndoReport
from fermata.turns.turn import load_turn
from tests.chaos.mutations import Mutation, change, replace, together

LATE_SECONDS = 900
USAGE_BUILDERS = (
    "fermata.turns.accounting.build_request_usage",
    "fermata.turns.round.model_request.build_request_usage",
)


def change_usages(**members: Any) -> Mutation:
    """Let ledger rows have other members; a function gets the right value."""

    def wrap(build: Callable[..., Any]) -> Callable[..., Any]:
        def build_changed(*given: Any, **named: Any) -> Any:
            usage = build(*given, **named)
            changed = {name: to(getattr(usage, name)) if callable(to) else to for name, to in members.items()}
            return usage.model_copy(update=changed)

        return build_changed

    return together(*(change(target, wrap) for target in USAGE_BUILDERS))


def _never(*_: object, **__: object) -> None:
    return None


def _empty(*_: object) -> str:
    return ""


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _bill_always(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: build(*given).model_copy(update={"is_billable": True})


def _recover_late(recover: Callable[..., Any]) -> Callable[..., Any]:
    """Leave a turn alone in the first quarter of an hour."""

    def recover_turn(resources: Any, tenant: str, turn_id: str, **named: Any) -> Any:
        turn = load_turn(resources, tenant, turn_id)
        if turn is None or resources.clock.time() - turn.started_ms / 1000 > LATE_SECONDS:
            return recover(resources, tenant, turn_id, **named)
        return None

    return recover_turn


def _undo_newest_edit_only(find: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context: None if context.log.state.last_edit_key else find(context)


def _lose_data(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda output: build(output.model_copy(update={"data": None}))


NO_REPORT = property(lambda _outcome: UndoReport(undone=(), skipped=()))
NO_NOTE = property(lambda _outcome: "")
OUTCOME = "fermata.turns.undo.undo_report.UndoOutcome"

PLANTED_BUGS: dict[str, tuple[int, Mutation]] = {
    # charges
    "a request costs twice its price": (0, change_usages(cost=lambda cost: cost * 2)),
    "a request is of another user": (0, change_usages(user="nobody")),
    "a request is of another model": (0, change_usages(model="another")),
    "a request is of another scope": (0, change_usages(scope="content")),
    "a failed turn is billable": (17, change("fermata.turns.end.end_turn.build_turn_outcome", _bill_always)),
    # budgets
    "a budget refuses nothing": (
        3,
        replace("fermata.usage.budgets.budget_limits._with_limits", lambda account, _: account),
    ),
    "only the first request of a turn is held": (
        1,
        replace("fermata.turns.round.begin_round._awaits_budget_hold", _no),
    ),
    # undo
    "an undo undoes nothing": (12, replace("fermata.turns.undo.undo_round._find_next_inverse", _never)),
    "an undo undoes the newest edit only": (
        12,
        change("fermata.turns.undo.undo_round._find_next_inverse", _undo_newest_edit_only),
    ),
    "the report of an undo is empty": (12, replace(f"{OUTCOME}.report", NO_REPORT)),
    # what the model is told, and what is kept
    "the model is not told of an undo": (12, replace(f"{OUTCOME}.note", NO_NOTE)),
    "the model does not get the data of a result": (
        1,
        change("fermata.turns.round_commit._build_result_block", _lose_data),
    ),
    "the snapshot of a prompt is not stored": (
        0,
        replace("fermata.turns.start.start_turn._store_snapshot", _empty),
    ),
    "the snapshot of an answer is not stored": (
        1,
        replace("fermata.turns.answer.submit_tool_result._store_snapshot", _empty),
    ),
    "a new title is lost": (0, replace("fermata.conversations.conversation_store._write_changes", _yes)),
    # recovery
    "a turn is recovered a quarter of an hour late": (
        7,
        together(
            change("tests.chaos.platform_invocations.recover_turn", _recover_late),
            change("fermata.turns.recover.recover_open_turns.recover_turn", _recover_late),
        ),
    ),
}
"""By what is wrong: the first seed that shows it, and how it is planted."""
