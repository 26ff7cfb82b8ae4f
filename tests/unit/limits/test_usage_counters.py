"""Test the rules of the counts of one row: what is within its limits, and what a damaged row or another clock does."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb_errors import get_dynamodb_error_code
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Update, deserialize_item, serialize_item
from fermata.aws.dynamodb_requests import build_write_request
from fermata.domain.errors import PayloadTooLarge
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, UseLimits
from fermata.limits.leases import build_lease_removal, build_reader_removal, list_live_leases
from fermata.limits.limit_keys import TENANT_SHARDS, divide_limits
from fermata.limits.limit_refusals import build_limit_refusal, check_use_fits_limits
from fermata.limits.refuse_late_copy import TIME_PREFIX, TIME_SLOTS
from fermata.limits.usage_counters import TURN_LEASE_SECONDS, LimitReached, ReaderCounters, UsageCounters, Use
from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.chaos.memory_aws.tables import MemoryTable

NOON = 1_800_014_400.0
LIMITS = UseLimits(prompts_per_minute=6, turns_at_once=3, readers_at_once=2, uploads_per_day=4, bytes_per_day=1000)
KEY = ItemKey("bridges", "t#bakery#limits#user#1", "counts")
PROMPT = Use(prompts=1)


def count(item: Item, now: float = NOON, limits: UseLimits = LIMITS) -> UsageCounters:
    return UsageCounters(KEY, item, limits, now)


class Row:
    """One row, to which writes are applied in any order."""

    def __init__(self, item: Item | None = None) -> None:
        self._table = MemoryTable("bridges")
        self._dynamodb = MemoryDynamoDB([self._table])
        self._table.replace((KEY.pk, KEY.sk), serialize_item(item) if item else None)

    @property
    def item(self) -> Item:
        return deserialize_item(self._table.find((KEY.pk, KEY.sk)) or {})

    def accepts(self, write: Update) -> bool:
        """Apply a write, or return whether it was refused."""
        try:
            self._dynamodb.update_item(**build_write_request(write)[1])
        except ClientError as error:
            if get_dynamodb_error_code(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True


def apply(item: Item, use: Use, now: float = NOON, counts: type[UsageCounters] = UsageCounters) -> Item:
    """Return the item after the write that counts the use, as DynamoDB applies it."""
    row = Row(item)
    assert row.accepts(counts(KEY, item, LIMITS, now).build_update(use))
    return row.item


def find(item: Item, use: Use, now: float = NOON, limits: UseLimits = LIMITS) -> LimitReached | None:
    return count(item, now, limits).find_limit_reached(use)


def prompt_repeatedly(times: int, item: Item | None = None, now: float = NOON) -> Item:
    item = item or {}
    for _ in range(times):
        assert find(item, PROMPT, now) is None
        item = apply(item, PROMPT, now)
    return item


def test_the_prompts_of_a_minute_may_come_at_once() -> None:
    assert find(prompt_repeatedly(6), PROMPT) == LimitReached("prompts", 6, 10)


def test_a_refused_prompt_is_possible_when_the_refusal_says() -> None:
    item = prompt_repeatedly(6)
    assert find(item, PROMPT, NOON + 9.99) is not None
    item = prompt_repeatedly(1, item, NOON + 10)
    assert find(item, PROMPT, NOON + 10) is not None


def test_after_a_quiet_minute_all_prompts_are_free_again() -> None:
    prompt_repeatedly(6, prompt_repeatedly(6), NOON + 60)


def test_no_hour_has_more_prompts_than_its_minutes_may() -> None:
    item: Item = {}
    sent = 0
    for second in range(3600):
        while find(item, PROMPT, NOON + second) is None:
            item, sent = apply(item, PROMPT, NOON + second), sent + 1
    assert sent <= 61 * 6


def test_a_turn_counts_until_its_lease_expires() -> None:
    item: Item = {}
    for name in "abc":
        item = apply(item, Use(turn=name))
    assert find(item, Use(turn="d")) == LimitReached("turns", 3, None)
    assert find(item, Use(turn="d"), NOON + TURN_LEASE_SECONDS) is None
    assert item["leases"] == {"a", "b", "c"}
    item = apply(item, Use(turn="d"), NOON + TURN_LEASE_SECONDS)
    assert item["leases"] == {"d"}


def test_of_turns_that_count_no_more_the_latest_stay_in_the_row() -> None:
    dead = {f"x#{number:03d}": int(NOON) - 1000 + number for number in range(90)}
    item = apply(dead | {"x#damaged": "soon", "x#far": int(NOON) * 2}, Use(turn="new"))
    assert sorted(name for name in item if name.startswith("x#")) == [
        *(f"x#{number:03d}" for number in range(40, 90)),
        "x#new",
    ]
    assert item["leases"] == {"new"}
    readers = apply(dead, Use(reader="new"), counts=ReaderCounters)
    assert [name for name in readers if name.startswith("x#")] == ["x#new"]


def test_leases_that_have_expired_and_stay_keep_nobody_from_being_counted_in_any_order() -> None:
    item = apply({"x#old": int(NOON) - 1000}, Use(turn="a"))
    row = Row(item)
    assert all(row.accepts(count(item).build_update(Use(turn=turn))) for turn in "bc")
    assert row.item["leases"] == {"a", "b", "c"}


def test_a_lowered_limit_refuses_turns_while_more_run() -> None:
    item: Item = {}
    for name in "abc":
        item = apply(item, Use(turn=name))
    lower = replace(LIMITS, turns_at_once=1)
    assert find(item, Use(turn="d"), limits=lower) == LimitReached("turns", 1, None)
    assert find({name: value for name, value in item.items() if name != "x#a"}, Use(turn="d"), limits=lower) is not None


def test_a_new_day_begins_with_nothing() -> None:
    item = apply({}, Use(uploads=4, stored_bytes=900))
    assert find(item, Use(uploads=1)) == LimitReached("uploads", 4, 43_200)
    assert find(item, Use(stored_bytes=101)) == LimitReached("stored_bytes", 1000, 43_200)
    assert find(item, Use(stored_bytes=100)) is None
    assert find(item, Use(uploads=4, stored_bytes=1000), NOON + 43_200) is None


def test_a_process_whose_clock_is_behind_midnight_goes_on_with_the_new_day() -> None:
    midnight = NOON + 43_200
    item = apply({}, Use(uploads=4), midnight + 1)
    assert find(item, Use(uploads=1), midnight - 1) is not None
    item = apply(item, Use(stored_bytes=5), midnight - 1)
    assert (item["uploads"], item["bytes"]) == (4, 5)


@pytest.mark.parametrize("ahead", [-3600, -30, 30, 3600, 365 * 86_400])
def test_a_clock_that_is_off_refuses_nobody_for_longer_than_two_minutes(ahead: float) -> None:
    item = prompt_repeatedly(6, now=NOON + ahead)
    assert find(item, PROMPT, NOON + 120) is None


@pytest.mark.parametrize("ahead", [3600 * 24, 365 * 86_400])
def test_a_turn_of_a_clock_that_is_far_ahead_does_not_count_for_ever(ahead: float) -> None:
    item = apply({}, Use(turn="a"), NOON + ahead)
    assert count(item).count_running() == 0


DAMAGES = [None, "x", -5, 10**30, Decimal("1.5"), True, [], {}, b"x", {1}, {"x"}]
NAMES = ["version", "free_at", "base_us", "used_us", "day", "uploads", "bytes", "leases", "x#a", "ttl"]


@pytest.mark.parametrize("damage", DAMAGES, ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_row_admits_and_is_repaired(name: str, damage: Any) -> None:
    healthy = apply({}, Use(prompts=1, turn="a", uploads=1, stored_bytes=1))
    use = Use(prompts=1, turn="b", uploads=1, stored_bytes=1)
    damaged = healthy | {name: damage}
    assert find(damaged, use) is None
    repaired = apply(damaged, use)
    assert repaired.keys() - {"x#a"} == healthy.keys() - {"x#a"} | {"x#b"}
    live = list_live_leases(repaired, NOON, TURN_LEASE_SECONDS)
    assert repaired["leases"] == {name.removeprefix("x#") for name in live}
    assert count(repaired).count_running() in (1, 2)
    assert repaired["uploads"] in (1, 2)
    assert repaired["bytes"] in (1, 2)
    assert repaired["day"] == healthy["day"]
    assert repaired["base_us"] + repaired["used_us"] - NOON * 10**6 in (10 * 10**6, 20 * 10**6)


ROWS: dict[str, Item] = {
    "no row": {},
    "a quiet row": apply({}, Use(prompts=1, turn="a", uploads=1, stored_bytes=1), NOON - 600),
    "a busy row": apply({}, Use(prompts=1, turn="a", uploads=1, stored_bytes=1)),
    "what the end of a turn leaves": {"ttl": 5},
}
USES = [Use(prompts=1), Use(turn="b"), Use(turn="c"), Use(uploads=1, stored_bytes=9), Use(prompts=1, stored_bytes=5)]


@pytest.mark.parametrize("state", ROWS)
def test_uses_within_the_limits_are_counted_in_any_order_though_all_have_read_the_same_row(state: str) -> None:
    writes = [count(ROWS[state]).build_update(use) for use in USES]
    results = []
    for order in permutations(writes):
        row = Row(ROWS[state])
        assert all(row.accepts(write) for write in order)
        results.append(row.item)
    assert all(result == results[0] for result in results)
    one_by_one = ROWS[state]
    for use in USES:
        one_by_one = apply(one_by_one, use)
    assert results[0] == one_by_one


@pytest.mark.parametrize("state", ROWS)
@pytest.mark.parametrize("use", [PROMPT, Use(turn="b"), Use(stored_bytes=300)], ids=repr)
def test_as_many_of_the_uses_that_have_read_the_same_row_are_counted_as_the_limits_allow(state: str, use: Use) -> None:
    row, item, allowed = Row(ROWS[state]), ROWS[state], 0
    while find(item, rename(use, allowed)) is None:
        item, allowed = apply(item, rename(use, allowed)), allowed + 1
    writes = [count(ROWS[state]).build_update(rename(use, number)) for number in range(20)]
    assert sum(row.accepts(write) for write in writes) == allowed
    assert find(row.item, rename(use, 20)) is not None


SINGLE_USES = [
    Use(uploads=1, stored_bytes=9, single="upload"),
    Use(stored_bytes=9, single="body"),
    Use(prompts=1, stored_bytes=9, single="queued"),
    Use(prompts=1, single="generated"),
]


@pytest.mark.parametrize("state", ROWS)
@pytest.mark.parametrize("use", SINGLE_USES, ids=repr)
def test_a_use_beside_no_log_entry_that_lands_again_is_not_counted_again(state: str, use: Use) -> None:
    row = Row(ROWS[state])
    write = count(row.item).build_update(use)
    assert row.accepts(write)
    assert not row.accepts(write)
    for later in (NOON, NOON + 3600, NOON + 86_400, NOON + 10 * 86_400):
        assert row.accepts(count(row.item, later).build_update(Use(stored_bytes=9)))
        assert row.accepts(count(row.item, later).build_update(replace(use, single=f"another {later}")))
        before = row.item
        assert not row.accepts(write)
        assert row.item == before


def test_the_lease_of_a_reader_that_lands_again_is_not_taken_again() -> None:
    row = Row()
    take = ReaderCounters(KEY, {}, LIMITS, NOON).build_update(Use(reader="r", single="r"))
    assert row.accepts(take)
    assert row.accepts(build_reader_removal(KEY, "r"))
    assert not row.accepts(take)


@pytest.mark.parametrize("state", ROWS)
def test_a_use_beside_no_log_entry_that_lands_late_is_counted_once_or_refused(state: str) -> None:
    """Those after it may have been written with a clock that is ahead."""
    for clock in (NOON - 50, NOON + 50):
        row = Row(ROWS[state])
        late = count(row.item).build_update(SINGLE_USES[1])
        assert row.accepts(count(row.item, clock).build_update(SINGLE_USES[1]))
        accepted = row.accepts(late)
        assert not row.accepts(late)
        assert row.item["bytes"] - ROWS[state].get("bytes", 0) == 9 + 9 * accepted


def test_uses_beside_no_log_entry_that_have_read_the_same_row_are_counted_as_they_come() -> None:
    writes = [count({}, NOON + n / 1000).build_update(Use(stored_bytes=9, single=str(n))) for n in range(100)]
    row = Row()
    assert all(row.accepts(write) for write in writes)
    assert row.item["bytes"] == 900
    assert len([name for name in row.item if name.startswith(TIME_PREFIX)]) <= TIME_SLOTS


@pytest.mark.parametrize("damage", [*DAMAGES, int((NOON + 9 * 86_400) * 10**6)], ids=repr)
def test_a_damaged_time_of_a_slot_keeps_no_use_from_being_counted(damage: Any) -> None:
    item = apply({}, SINGLE_USES[1])
    (name,) = [name for name in item if name.startswith(TIME_PREFIX)]
    row = Row(item | {name: damage})
    write = count(row.item).build_update(SINGLE_USES[1])
    assert row.accepts(write)
    assert not row.accepts(write)
    assert row.item["bytes"] == 18


def rename(use: Use, number: int) -> Use:
    return replace(use, turn=f"turn {number}") if use.turn else use


def test_prompts_that_find_a_quiet_row_a_moment_apart_do_not_exceed_the_limit() -> None:
    """The bucket is begun anew by each of them, with a clock of its own."""
    quiet = ROWS["a quiet row"]
    for moments in permutations([NOON - 2, NOON, NOON + 0.7, NOON + 3]):
        row = Row(quiet)
        writes = [count(quiet, moment).build_update(PROMPT) for moment in moments for _ in range(9)]
        accepted = sum(row.accepts(write) for write in writes)
        item, more = row.item, 0
        while find(item, PROMPT, NOON + 3) is None:
            item, more = apply(item, PROMPT, NOON + 3), more + 1
        assert accepted + more == 6


def test_a_row_of_an_earlier_version_counts_on() -> None:
    day = f"{datetime.fromtimestamp(NOON, UTC):%Y-%m-%d}"
    old = {"version": 7, "free_at": int((NOON + 40) * 10**6), "day": day, "uploads": 3, "bytes": 800}
    old |= {"x#a": int(NOON) + 60, "x#b": int(NOON) + 70, "x#dead": int(NOON) - 1}
    assert find(old, Use(uploads=2)) is not None
    assert find(old, Use(stored_bytes=201)) is not None
    prompted = prompt_repeatedly(2, old)
    assert find(prompted, PROMPT) is not None
    begun = apply(prompted, Use(turn="c"))
    assert begun["leases"] == {"a", "b", "c"}
    assert not begun.keys() & {"version", "free_at"}
    assert find(begun, Use(turn="d")) == LimitReached("turns", 3, None)


def test_a_turn_that_an_earlier_version_counts_meanwhile_is_noticed() -> None:
    row = Row(ROWS["a busy row"])
    write = count(row.item).build_update(Use(turn="b"))
    row = Row(row.item | {"version": 1, "x#new": int(NOON) + 60})
    assert not row.accepts(write)
    assert row.accepts(count(row.item).build_update(Use(turn="b")))
    assert row.item["leases"] == {"a", "b", "new"}


@pytest.mark.parametrize("item", [{}, *ROWS.values()], ids=repr)
def test_the_end_of_a_turn_is_counted_in_any_row(item: Item) -> None:
    row = Row(item)
    for _ in range(2):
        assert row.accepts(build_lease_removal(KEY, "a", NOON))
        assert not {"x#a", "leases"} & row.item.keys()


@pytest.mark.parametrize("limit", [1, 5, 16, 17, 200, 601])
def test_the_parts_of_a_limit_are_the_limit(limit: int) -> None:
    limits = UseLimits(limit, limit, limit, limit, limit)
    parts = [divide_limits(limits, shard) for shard in range(TENANT_SHARDS)]
    assert sum(part.turns_at_once for part in parts) == sum(part.prompts_per_minute for part in parts) == limit


def test_a_part_of_zero_admits_nothing() -> None:
    none = UseLimits(0, 0, 0, 0, 0)
    uses = [PROMPT, Use(turn="a"), Use(uploads=1), Use(stored_bytes=1)]
    assert all(find({}, use, limits=none) for use in uses)


@pytest.mark.parametrize(
    ("use", "limits", "words"),
    [
        (Use(uploads=1, stored_bytes=9), {"uploads_per_day": 0}, "may not upload anything."),
        (Use(prompts=1, stored_bytes=2_000_001), {"bytes_per_day": 2_000_000}, "2,000,000 bytes a day, and this alone"),
    ],
)
def test_what_is_larger_than_all_of_a_day_is_refused_without_a_time_to_wait(
    use: Use, limits: dict[str, int], words: str
) -> None:
    defaults = DEFAULT_CALLER_LIMITS
    for chosen, who in (
        (replace(defaults, user=replace(defaults.user, **limits)), "You"),
        (replace(defaults, tenant=replace(defaults.tenant, **limits)), "Your workspace"),
    ):
        with pytest.raises(PayloadTooLarge) as caught:
            check_use_fits_limits(use, chosen)
        assert caught.value.message.startswith(who)
        assert words in caught.value.message
        assert caught.value.retry_after is None


@pytest.mark.parametrize(
    ("reached", "seconds", "words"),
    [
        (LimitReached("prompts", 30, 0.4), 1, "as many prompts as you may in a minute (30). The next one is "),
        (LimitReached("prompts", 30, 1.4), 2, "possible in 2 seconds."),
        (LimitReached("turns", 1000, None), 5, "As many of your turns are running as may run at once (1,000)."),
        (LimitReached("uploads", 4, 43_200), 43_200, "possible in 12 h 0 min"),
        (LimitReached("stored_bytes", 1000, 121), 121, "You may store more in 3 minutes"),
    ],
)  # fmt: skip
def test_a_refusal_says_which_limit_what_it_is_and_when_it_is_free(
    reached: LimitReached, seconds: int, words: str
) -> None:
    refusal = build_limit_refusal(reached, "user")
    assert words in refusal.message
    assert (refusal.retry_after, refusal.reason) == (seconds, reached.reason)
