"""A tenant's account is spread over several items: no hold waits for another, and together they never overdraw it."""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.aws.dynamodb_client import MAX_PAUSE_SECONDS, MAX_WRITE_ATTEMPTS
from fermata.aws.dynamodb_items_and_writes import Item, Put, Update, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets import account_shards, holds
from fermata.usage.budgets.account_shards import MAX_ACCOUNT_SHARDS, ShardedAccount, list_account_keys
from fermata.usage.budgets.budget_accounts import BudgetAccount, BudgetDate
from tests.quick_suite_samples import count_examples
from tests.resources import TestClock, resources_of_new_process
from tests.unit.usage.budget_steps import (
    CENT,
    make_limits,
    make_request,
    read_account,
    read_today,
    release_hold,
    set_budget,
    settle_request,
)
from tests.unit.usage.ledger_factories import TENANT
from tests.unit.usage.reserve_budget import reserve_budget

DATE = BudgetDate("2026-11", "28")
ACCOUNT = BudgetAccount.for_tenant(TENANT)


def read_items(resources: Resources) -> dict[str, Item]:
    """Return the items of the tenant's account in this month, by sort key."""
    month = BudgetDate.from_epoch_seconds(resources.clock.time()).month
    keys = list_account_keys(ACCOUNT, month)
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys)
    return {sort_key: item for (_, sort_key), item in items.items()}


def test_turns_hold_in_all_items_and_each_settles_where_it_holds(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=100))
    for number in range(80):
        reserve_budget(resources, make_request(number), CENT)
    assert len(read_items(resources)) == MAX_ACCOUNT_SHARDS
    assert read_today(resources)["heldUsd"] == 0.8
    for number in range(40):
        settle_request(resources, number, Decimal("0.003"))
    for number in range(40, 80):
        release_hold(resources, number)
    assert read_today(resources)["heldUsd"] == 0
    assert read_today(resources)["spentUsd"] == 0.12
    assert all(item["held"] == 0 for item in read_items(resources).values() if "held" in item)


def test_a_small_budget_and_that_of_a_user_are_one_item(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=9), each_user=make_limits(daily=1000))
    for number in range(20):
        reserve_budget(resources, make_request(number), CENT)
    assert len(read_items(resources)) == 1
    user = BudgetAccount.for_user(TENANT, "ada")
    assert len(list_account_keys(user, "2026-11")) == 1


@pytest.mark.parametrize("limits", [{"daily": 40}, {"monthly": 40}, {"daily": 40, "monthly": 45}])
def test_the_whole_budget_can_be_used_although_no_item_alone_has_enough_left(
    resources: Resources, limits: dict[str, Any]
) -> None:
    set_budget(resources, tenant=make_limits(**limits))
    for number in range(13):
        reserve_budget(resources, make_request(number), Decimal(3))
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve_budget(resources, make_request(13), Decimal(3))
    assert read_today(resources)["heldUsd"] == 39
    assert read_today(resources)["spentUsd"] == 0, "what was moved between items is still the same sum"


def test_a_hold_may_be_larger_than_the_part_of_an_item(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=100))
    reserve_budget(resources, make_request(1), Decimal(99))
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve_budget(resources, make_request(2), Decimal(2))
    settle_request(resources, 1, Decimal(10))
    assert read_today(resources) == {"spentUsd": 10, "heldUsd": 0, "leftUsd": 90}


def test_an_account_that_was_one_item_goes_on_with_what_it_has(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release wrote one item, with most of the limit spent, and a hold that is settled now."""
    set_budget(resources, tenant=make_limits(daily=100))
    with monkeypatch.context() as patch:
        patch.setattr(account_shards, "MAX_ACCOUNT_SHARDS", 1)
        for number, cost in ((1, "90"), (2, "1")):
            reserve_budget(resources, make_request(number), Decimal(cost))
        settle_request(resources, 1, Decimal(90))
    rows = read_hold_rows(resources, 2)
    assert rows["shards"] == {}
    admitted = admit_until_refused(resources, range(10, 40), Decimal(1))
    assert admitted == 9
    settle_request(resources, 2, Decimal(1))
    assert read_today(resources) == {"spentUsd": 91, "heldUsd": 9, "leftUsd": 0}


def read_hold_rows(resources: Resources, number: int) -> Item:
    row = resources.tables.get_item(resources.settings.bridges_table, f"t#{TENANT}#turn#turn-{number}", "hold")
    assert row is not None
    return row


def admit_until_refused(resources: Resources, numbers: Sequence[int], amount: Decimal) -> int:
    admitted = 0
    for number in numbers:
        try:
            reserve_budget(resources, make_request(number), amount)
        except PaymentRequired:
            break
        admitted += 1
    return admitted


def test_a_hold_row_that_names_no_item_is_settled_in_the_first(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=9))
    reserve_budget(resources, make_request(1), CENT)
    row = {name: value for name, value in read_hold_rows(resources, 1).items() if name != "shards"}
    resources.tables.write_items(Put(resources.settings.bridges_table, row))
    settle_request(resources, 1, CENT)
    assert read_today(resources)["spentUsd"] == 0.01
    assert read_today(resources)["heldUsd"] == 0


def test_a_lowered_limit_counts_what_every_item_has(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=100))
    for number in range(32):
        reserve_budget(resources, make_request(number), Decimal(1))
        settle_request(resources, number, Decimal(1))
    set_budget(resources, tenant=make_limits(daily=33))
    assert admit_until_refused(resources, range(100, 110), Decimal("0.5")) == 2
    set_budget(resources, tenant=make_limits(daily=4))
    assert admit_until_refused(resources, range(110, 112), Decimal("0.5")) == 0


def test_a_hold_that_nobody_settles_expires_in_its_item(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(monthly=100))
    for number in range(30):
        reserve_budget(resources, make_request(number), CENT)
    clock.advance(holds.HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources, make_request(99), CENT)
    assert read_account(resources, clock.now_iso()[:7]) == (0, CENT)


amounts = st.decimals(min_value=0, max_value=20, places=2)
items = st.lists(st.tuples(amounts, amounts), min_size=MAX_ACCOUNT_SHARDS, max_size=MAX_ACCOUNT_SHARDS)


def read_shards(used: Sequence[tuple[Decimal, Decimal]], daily: Decimal | None, monthly: Decimal) -> ShardedAccount:
    keys = list_account_keys(ACCOUNT, DATE.month)
    rows = {
        key: {"spent": spent, "spent_28": spent / 2, "held": held, "held_28": held}
        for key, (spent, held) in zip(keys, used, strict=True)
    }
    return ShardedAccount.from_items(ACCOUNT.with_limits(daily, monthly), DATE, rows)


@settings(max_examples=count_examples(60), deadline=None)
@given(used=items, limit=st.integers(min_value=1, max_value=700))
def test_the_caps_of_all_items_are_the_limit_together(used: list[tuple[Decimal, Decimal]], limit: int) -> None:
    """So holds that depend on their own item only cannot overdraw the budget together, however they interleave."""
    account = read_shards(used, None, Decimal(limit))
    usable = account._list_usable_shards()
    others = sum((spent + held for spent, held in used[len(usable) :]), Decimal(0))
    total = sum((spent + held for spent, held in used), Decimal(0))
    caps = [state.account.monthly_limit or Decimal(0) for state in usable]
    assert sum(caps) + others == max(Decimal(limit), total)
    left = sum((max(state.month_period.remaining or Decimal(0), Decimal(0)) for state in usable), Decimal(0))
    assert left == max(Decimal(limit) - total, Decimal(0))


@settings(max_examples=count_examples(60), deadline=None)
@given(used=items, limit=st.integers(min_value=80, max_value=700), growing=st.integers(0, 15))
def test_a_cap_stays_the_same_while_the_items_below_their_caps_fill(
    used: list[tuple[Decimal, Decimal]], limit: int, growing: int
) -> None:
    """So the caps of a reader who is late are those of the others."""
    before = read_shards(used, None, Decimal(limit))._list_usable_shards()
    room = before[growing].month_period.remaining or Decimal(0)
    spent, held = used[growing]
    filled = [*used[:growing], (spent + room, held), *used[growing + 1 :]]
    after = read_shards(filled, None, Decimal(limit))._list_usable_shards()
    assert [s.account.monthly_limit for s in after] == [s.account.monthly_limit for s in before]


@pytest.mark.exhaustive
def test_holds_that_interleave_in_any_order_never_overdraw(resources: Resources) -> None:
    """Each of forty processes reads the account before any of them writes, again and again."""
    set_budget(resources, tenant=make_limits(daily=20))
    source = random.Random(7)
    reserve_budget(resources, make_request(999), CENT)
    pending: list[tuple[int, list[Write]]] = []
    admitted = Decimal("0.01")
    for number in range(120):
        request, amount = make_request(number), Decimal(source.randrange(5, 200)) / 100
        row, accounts = holds._read_hold_and_accounts(resources_of_new_process(resources), request)
        shard = accounts[0].choose_shard(request.turn, amount)
        if shard is not None and accounts[0].total.day_period.can_cover(amount):
            pending.append((number, holds._build_hold_writes(resources, request, row, [shard], amount)))
        while len(pending) > source.randrange(40):
            _, writes = pending.pop(source.randrange(len(pending)))
            if resources_try_to_write(resources, writes):
                admitted += find_amount(writes)
    assert Decimal(str(read_today(resources)["heldUsd"])) == admitted <= 20
    assert admitted > 15


def resources_try_to_write(resources: Resources, writes: Sequence[Write]) -> bool:
    from fermata.aws.dynamodb_items_and_writes import TransactionCanceled

    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled:
        return False
    return True


def find_amount(writes: Sequence[Write]) -> Decimal:
    [update] = [write for write in writes if isinstance(write, Update)]
    amount: Decimal = update.values[":amount"]
    return amount


CONCURRENT_TURNS = 1_000
SECONDS_BETWEEN_REQUESTS = 8.0
TRANSACTION_SECONDS = 0.012
"""How long a transaction of five items holds each of them, with room to spare."""


def simulate_transactions(keys_of_turn: Sequence[Sequence[tuple[str, str]]], seconds: float = 20) -> tuple[int, float]:
    """Simulate the holds and settlements of turns that run at once, under DynamoDB's rule for transactions.

    A transaction that meets another one at an item is cancelled, and its client tries again as `write_items` does.

    Returns:
        How many transactions were given up, and the most writes of one item within a second.
    """
    source = random.Random(1)
    busy_until: dict[tuple[str, str], float] = defaultdict(float)
    writes_by_second: Counter[tuple[tuple[str, str], int]] = Counter()
    events = [(source.uniform(0, SECONDS_BETWEEN_REQUESTS), turn, 1) for turn in range(len(keys_of_turn))]
    heapq.heapify(events)
    given_up = 0
    while events and events[0][0] < seconds:
        now, turn, attempt = heapq.heappop(events)
        is_free = all(busy_until[key] <= now for key in keys_of_turn[turn])
        if is_free:
            for key in keys_of_turn[turn]:
                busy_until[key] = now + TRANSACTION_SECONDS
                writes_by_second[key, int(now)] += 1
        elif attempt < MAX_WRITE_ATTEMPTS:
            pause = source.uniform(0, min(0.01 * 2**attempt, MAX_PAUSE_SECONDS))
            heapq.heappush(events, (now + pause, turn, attempt + 1))
            continue
        else:
            given_up += 1
        # A round is two transactions: the hold before its request, and the settlement after it.
        heapq.heappush(events, (now + SECONDS_BETWEEN_REQUESTS / 2 * source.uniform(0.8, 1.2), turn, 1))
    return given_up, max(writes_by_second.values())


def list_written_items(resources: Resources, count: int) -> list[list[tuple[str, str]]]:
    """Return the items of the account that each turn writes, as the package chooses them."""
    _, accounts = holds._read_hold_and_accounts(resources, make_request(0))
    chosen = [accounts[0].choose_shard(f"turn-{number}-{number * 7919:x}", CENT) for number in range(count)]
    return [[(state.account.pk, state.sort_key)] for state in chosen if state is not None]


def test_a_thousand_concurrent_turns_of_a_tenant_do_not_conflict_into_failures(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=500))
    reserve_budget(resources, make_request(1), CENT)
    keys = list_written_items(resources, CONCURRENT_TURNS)
    assert len(keys) == CONCURRENT_TURNS
    given_up, writes_a_second = simulate_transactions(keys)
    assert given_up == 0
    # An item with 63 holds has about 5 KB: 5 units, twice in a transaction. A partition has 1,000.
    assert writes_a_second * 5 * 2 < 1_000
    in_one_item = [[("account", "2026-11")]] * CONCURRENT_TURNS
    given_up_in_one_item, _ = simulate_transactions(in_one_item)
    assert given_up_in_one_item > 100, "the simulation shows the fault that the items avoid"


def test_a_hold_and_its_settlement_send_as_many_requests_as_with_one_item(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    def count(model: Any, **_: Any) -> None:
        requests.append(model.name)

    set_budget(resources, tenant=make_limits(daily=500))
    reserve_budget(resources, make_request(1), CENT)
    resources.tables._client.meta.events.register("before-call.dynamodb", count)
    reserve_budget(resources, make_request(2), CENT)
    settle_request(resources, 2, CENT)
    assert requests == ["BatchGetItem", "TransactWriteItems", "GetItem", "TransactWriteItems"]


def test_a_late_copy_of_a_move_changes_nothing(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=20))
    for number in range(4):
        reserve_budget(resources, make_request(number), Decimal(3))
    _, [account] = holds._read_hold_and_accounts(resources_of_new_process(resources), make_request(9))
    moves = account.build_moves(resources.settings.bridges_table, Decimal(4))
    assert len(moves) >= 2
    assert resources_try_to_write(resources, moves)
    before = read_items(resources)
    assert sum(item.get("spent", 0) for item in before.values()) == 0
    assert not resources_try_to_write(resources, moves)
    assert read_items(resources) == before
