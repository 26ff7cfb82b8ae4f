"""Budgets are reserved before a request, settled after it, released when a hold expires, and never overdrawn."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets.holds import HOLD_LIFETIME_SECONDS, build_settlement_writes
from fermata.usage.usage_writes import build_request_writes
from tests.resources import TestClock, resources_of_new_process
from tests.unit.usage.budget_steps import (
    CENT,
    make_limits,
    make_request,
    read_today,
    release_hold,
    set_budget,
    settle_request,
)
from tests.unit.usage.ledger_factories import TENANT, make_usage
from tests.unit.usage.reserve_budget import reserve_budget


def test_the_audit_log_says_who_set_budgets_but_not_for_which_users(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    set_budget(resources, users={"ada": make_limits(daily=1), "bob": make_limits()})
    (line,) = [vars(record) for record in caplog.records if getattr(record, "audit", False)]
    fields = {name: line[name] for name in ("event", "tenant", "user", "users")}
    assert fields == {"event": "ai.budget.updated", "tenant": TENANT, "user": "boss", "users": 2}


def test_a_held_amount_is_not_available_to_others(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    with pytest.raises(PaymentRequired):
        reserve_budget(resources, make_request(2), CENT)
    assert read_today(resources) == {"spentUsd": 0, "heldUsd": 0.01, "leftUsd": 0.005}


def test_a_ledger_row_replaces_the_hold_by_the_cost(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, Decimal("0.004"))
    assert read_today(resources) == {"spentUsd": 0.004, "heldUsd": 0, "leftUsd": 0.996}


def test_the_rows_of_a_request_and_its_retries_are_settled_together(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    now = resources.clock.time()
    usages = [
        make_usage(now, turn="turn-1", request_number=number, cost=CENT, has_budget=True) for number in range(1, 4)
    ]
    resources.tables.write_items(*build_request_writes(resources, usages))
    assert read_today(resources)["spentUsd"] == 0.03


def test_a_row_for_which_no_hold_is_left_is_charged_on_its_day(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, CENT)
    usage = make_usage(resources.clock.time(), turn="turn-1", attempt=2, cost=2 * CENT, has_budget=True)
    resources.tables.write_items(*build_request_writes(resources, [usage]))
    assert read_today(resources) == {"spentUsd": 0.03, "heldUsd": 0, "leftUsd": 0.97}


def test_a_row_of_a_superseded_function_is_charged_and_leaves_the_hold_of_its_successor(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(attempt=2), CENT)
    settle_request(resources, 1, 2 * CENT)
    assert read_today(resources) == {"spentUsd": 0.02, "heldUsd": 0.01, "leftUsd": 0.97}


def test_a_hold_whose_request_died_without_a_row_makes_room_for_the_next_attempt(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    for attempt in range(1, 4):
        reserve_budget(resources, make_request(attempt=attempt), CENT)
    assert read_today(resources) == {"spentUsd": 0, "heldUsd": 0.01, "leftUsd": 0.005}


def test_writes_that_settled_a_hold_do_not_settle_a_later_one_when_they_land_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    writes = build_settlement_writes(resources, TENANT, "turn-1", (), ends_turn=True)
    resources.tables.write_items(*writes)
    reserve_budget(resources, make_request(round_=2), CENT)
    resources.tables.write_items(*writes)
    assert read_today(resources)["heldUsd"] == 0.01
    release_hold(resources, 1)
    assert read_today(resources)["heldUsd"] == 0


def test_reserving_twice_for_the_same_request_holds_once(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    for _ in range(3):
        reserve_budget(resources, make_request(), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_superseded_function_does_not_reserve_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(attempt=2), CENT)
    reserve_budget(resources, make_request(attempt=1), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_released_amount_can_be_reserved_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    for _ in range(2):
        release_hold(resources, 1)
    reserve_budget(resources, make_request(2), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_hold_left_by_a_crash_is_released_once_when_it_expires(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources_of_new_process(resources), make_request(2), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_row_written_after_its_hold_expired_counts_its_cost_and_releases_nothing_twice(
    resources: Resources, clock: TestClock
) -> None:
    set_budget(resources, tenant=make_limits(daily="0.02"))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources, make_request(2), CENT)
    settle_request(resources, 1, Decimal("0.004"))
    assert read_today(resources) == {"spentUsd": 0.004, "heldUsd": 0.01, "leftUsd": 0.006}


def test_an_expired_hold_of_the_same_request_is_reserved_again(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, Decimal("0.002"))
    assert read_today(resources) == {"spentUsd": 0.002, "heldUsd": 0, "leftUsd": 0.013}


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        ({"tenant": make_limits(daily="0.001")}, "The workspace's daily budget of $0.001"),
        ({"tenant": make_limits(monthly="0.001")}, "The workspace's monthly budget of $0.001"),
        ({"each_user": make_limits(daily="0.001")}, "Your daily budget of $0.001"),
        ({"users": {"ada": make_limits(monthly="0.001")}}, "Your monthly budget of $0.001"),
    ],
)
def test_a_refusal_says_whose_budget_what_is_left_and_when_it_renews(
    resources: Resources, clock: TestClock, limits: dict[str, Any], budget: str
) -> None:
    clock.now = datetime.fromisoformat("2026-12-31T18:00Z").timestamp()
    set_budget(resources, **limits)
    with pytest.raises(PaymentRequired) as refused:
        reserve_budget(resources, make_request(), CENT)
    assert refused.value.status == 402
    assert (
        refused.value.message == f"{budget} has $0.001 left, and this request may take $0.01. It renews at {RENEWS_AT}."
    )


RENEWS_AT = "2027-01-01T00:00Z"
"""On the last day of a month, the day and the month renew at the same instant."""


def test_limits_of_a_user_precede_those_of_each_user(resources: Resources) -> None:
    set_budget(resources, each_user=make_limits(daily="0.001"), users={"ada": make_limits(daily=1)})
    reserve_budget(resources, make_request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired):
        reserve_budget(resources, make_request(2, "bob"), CENT)


def test_the_user_and_the_workspace_both_need_enough_budget(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"), each_user=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired, match="workspace"):
        reserve_budget(resources, make_request(2, "bob"), CENT)


def test_a_free_request_holds_nothing_and_needs_that_something_is_left(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.01"))
    reserve_budget(resources, make_request(1), Decimal(0))
    assert read_today(resources)["heldUsd"] == 0
    settle_request(resources, 1, Decimal("0.02"))
    assert read_today(resources) == {"spentUsd": 0.02, "heldUsd": 0, "leftUsd": 0}
    with pytest.raises(PaymentRequired, match="something has to be left"):
        reserve_budget(resources, make_request(2), Decimal(0))


@pytest.mark.parametrize("owner", ["tenant", "each_user"])
def test_a_request_without_a_known_price_is_refused_under_a_limit(resources: Resources, owner: str) -> None:
    set_budget(resources, **{owner: make_limits(monthly=100)})
    request = replace(make_request(1), model="brand-new-1")
    with pytest.raises(PaymentRequired, match=r"model brand-new-1 is not known.*administrator") as refused:
        reserve_budget(resources, request, None)
    assert refused.value.reason == "unpriced_model"


def test_a_request_without_a_known_price_is_counted_where_limits_were_removed(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(monthly=100))
    set_budget(resources)
    reserve_budget(resources, make_request(1), None)
    assert read_today(resources)["heldUsd"] == 0


def test_a_budget_of_zero_refuses_every_request(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=0))
    with pytest.raises(PaymentRequired, match=r"has \$0\.00 left"):
        reserve_budget(resources, make_request(), CENT)


def test_lifted_limits_refuse_nothing_and_open_holds_are_settled(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    set_budget(resources)
    reserve_budget(resources, make_request(2), Decimal(100))
    release_hold(resources, 2)
    settle_request(resources, 1, CENT)
    assert (read_today(resources)["heldUsd"], read_today(resources)["leftUsd"]) == (0, None)
