"""Test the rules of the counts of one row: what is within its limits, and what a damaged row or another clock does."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.domain.use_limits import UseLimits
from fermata.limits.limit_keys import TENANT_SHARDS, divide_limits
from fermata.limits.limit_refusals import build_limit_refusal
from fermata.limits.use_counts import (
    TURN_LEASE_SECONDS,
    LimitReached,
    ReaderCounts,
    Use,
    UseCounts,
    list_live_leases,
)

NOON = 1_800_014_400.0
LIMITS = UseLimits(prompts_per_minute=6, turns_at_once=3, readers_at_once=2, uploads_per_day=4, bytes_per_day=1000)
KEY = ItemKey("bridges", "t#bakery#limits#user#1", "counts")
PROMPT = Use(prompts=1)


def count(item: Item, now: float = NOON, limits: UseLimits = LIMITS) -> UseCounts:
    return UseCounts(KEY, item, limits, now)


def apply(item: Item, use: Use, now: float = NOON, counts: type[UseCounts] = UseCounts) -> Item:
    """Return the item after the write that counts the use, as DynamoDB applies it."""
    update = counts(KEY, item, LIMITS, now).build_update(use)
    changes, _, removals = update.expression.removeprefix("SET ").partition(" REMOVE ")
    assigned = dict(change.split(" = ") for change in changes.split(", "))
    gone = {update.names[place] for place in removals.split(", ") if place}
    after = item | {update.names[place]: update.values[value] for place, value in assigned.items()}
    return {name: value for name, value in after.items() if name not in gone}


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
    item = apply(item, Use(turn="d"), NOON + TURN_LEASE_SECONDS)
    assert len(list_live_leases(item, NOON + TURN_LEASE_SECONDS, TURN_LEASE_SECONDS)) == 1


def test_of_turns_that_count_no_more_the_latest_stay_in_the_row() -> None:
    dead = {f"x#{number:03d}": int(NOON) - 1000 + number for number in range(90)}
    item = apply(dead | {"x#damaged": "soon", "x#far": int(NOON) * 2}, Use(turn="new"))
    assert sorted(name for name in item if name.startswith("x#")) == [
        *(f"x#{number:03d}" for number in range(40, 90)),
        "x#new",
    ]
    readers = apply(dead, Use(reader="new"), counts=ReaderCounts)
    assert [name for name in readers if name.startswith("x#")] == ["x#new"]


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


@pytest.mark.parametrize("damage", [None, "x", -5, 10**30, 1.5, True, [], {}, b"x"])
@pytest.mark.parametrize("name", ["version", "free_at", "day", "uploads", "bytes", "x#a", "ttl"])
def test_a_damaged_row_admits_and_is_repaired(name: str, damage: Any) -> None:
    healthy = apply({}, Use(prompts=1, turn="a", uploads=1, stored_bytes=1))
    use = Use(prompts=1, turn="b", uploads=1, stored_bytes=1)
    assert find(healthy | {name: damage}, use) is None
    repaired = apply(healthy | {name: damage}, use)
    assert repaired["version"] in (1, 2)
    update = count(healthy | {name: damage}).build_update(use)
    assert update.condition == "#version = :read"
    assert update.values[":read"] == (healthy | {name: damage})["version"]
    assert count(repaired).count_running() in (1, 2)
    assert repaired["uploads"] in (1, 2)
    assert repaired["bytes"] in (1, 2)
    assert repaired["day"] == healthy["day"]


def test_a_write_is_refused_if_the_row_has_changed() -> None:
    first = count({}).build_update(PROMPT)
    assert first.condition == "attribute_not_exists(#version)"
    second = count(apply({}, PROMPT)).build_update(PROMPT)
    assert (second.condition, second.values[":read"]) == ("#version = :read", 1)


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
