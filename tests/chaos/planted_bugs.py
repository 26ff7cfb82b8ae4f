"""Planted bugs: the product does something wrong with money, edits or what it keeps. The judge must notice each of them."""

from collections.abc import Callable
from dataclasses import replace as replace_members
from typing import Any

from tests.chaos.mutants import HOLDS, Mutation, change, replace, together

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


def _no(*_: object) -> bool:
    return False


def _hold_unconditionally(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: replace_members(build(*given, **named), condition="")


def _bill_always(build: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: build(*given).model_copy(update={"is_billable": True})


PLANTED_BUGS: dict[str, tuple[int, Mutation]] = {
    # charges
    "a request costs twice its price": (0, change_usages(cost=lambda cost: cost * 2)),
    "a request is of another user": (0, change_usages(user="nobody")),
    "a request is of another model": (0, change_usages(model="another")),
    "a request is of another scope": (0, change_usages(scope="content")),
    "a failed turn is billable": (0, change("fermata.turns.end.end_turn.build_turn_outcome", _bill_always)),
    # budgets
    "a budget refuses nothing": (0, replace(f"{HOLDS}._require_budget", _never)),
    "a hold is taken whatever the account has": (0, change(f"{HOLDS}.build_hold_update", _hold_unconditionally)),
    "only the first request of a turn is held": (
        0,
        replace("fermata.turns.round.begin_round._awaits_budget_hold", _no),
    ),
}
"""By what is wrong: the first seed that shows it, and how it is planted."""
