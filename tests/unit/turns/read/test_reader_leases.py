"""Readers of a user and a tenant stay within their limits, and a reader whose process was killed counts no more."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.errors import TooManyRequests
from fermata.domain.use_limits import CallerLimits
from fermata.limits.leases import READER_LEASE_SECONDS
from fermata.limits.limit_keys import TENANT_SHARDS, build_tenant_limits_key, build_user_limits_key
from fermata.limits.reader_leases import READER_RENEWAL_SECONDS, ReaderLease
from tests.unit.turns.stage import ADA, Stage

DEFAULTS = CallerLimits()
TOKEN_SECONDS = 600
"""How long DynamoDB recognises a copy of a transaction by its token."""
ONE_OF_A_USER = CallerLimits(user=replace(DEFAULTS.user, readers_at_once=1))
TWO_OF_A_USER = CallerLimits(user=replace(DEFAULTS.user, readers_at_once=2))
TWO_OF_A_TENANT = CallerLimits(tenant=replace(DEFAULTS.tenant, readers_at_once=2))


class Timers(list[Callable[[], Any]]):
    """What the timers of a process will do; each rings once."""

    def ring(self) -> None:
        due = [*self]
        self.clear()
        for act in due:
            act()


@pytest.fixture
def timers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Timers:
    started = Timers()

    def start_timer(seconds: float, act: Callable[[], Any]) -> Any:
        assert seconds == READER_RENEWAL_SECONDS
        started.append(act)
        return threading.Timer(0, act)  # never started

    monkeypatch.setattr(stage.resources.clock, "start_timer", start_timer)
    return started


def read_rows(stage: Stage) -> list[Item]:
    keys = [build_tenant_limits_key(stage.resources, ADA.tenant, shard, "readers") for shard in range(TENANT_SHARDS)]
    keys.append(build_user_limits_key(stage.resources, ADA.tenant, ADA.user, "readers"))
    return [row for key in keys for row in stage.stored_items(key.pk) if row["sk"] == "readers"]


def count_leases(stage: Stage) -> list[int]:
    """Return the leases of the tenant and of the user."""
    counts = {False: 0, True: 0}
    for row in read_rows(stage):
        counts["#user#" in row["pk"]] += sum(name.startswith("x#") for name in row)
    return [counts[False], counts[True]]


def take(stage: Stage, limits: CallerLimits = DEFAULTS) -> ReaderLease:
    return ReaderLease.take(stage.resources, ADA, limits)


def test_a_reader_counts_until_it_is_released(stage: Stage, timers: Timers) -> None:
    lease = take(stage)
    assert count_leases(stage) == [1, 1]
    for _ in range(2):
        lease.release()
        assert count_leases(stage) == [0, 0]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (TWO_OF_A_USER, "You follow turns with as many connections as you may have at once (2)."),
        (TWO_OF_A_TENANT, "Your workspace follows turns with as many connections as it may have at once (2)."),
    ],
)
def test_one_reader_too_many_is_refused_until_another_leaves(
    stage: Stage, timers: Timers, limits: CallerLimits, words: str
) -> None:
    leases = [take(stage, limits) for _ in range(2)]
    with pytest.raises(TooManyRequests) as refused:
        take(stage, limits)
    assert refused.value.message.startswith(words)
    assert (refused.value.reason, refused.value.retry_after) == ("readers", 5)
    leases[0].release()
    take(stage, limits)


def test_fifty_readers_at_once_are_as_many_as_may_be(stage: Stage, timers: Timers) -> None:
    def try_to_take(_: int) -> bool:
        try:
            take(stage, replace(DEFAULTS, user=replace(DEFAULTS.user, readers_at_once=7)))
        except TooManyRequests:
            return False
        return True

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(try_to_take, range(50))) == 7
    assert count_leases(stage) == [7, 7]


def test_a_reader_that_reads_on_counts_on(stage: Stage, timers: Timers) -> None:
    take(stage, TWO_OF_A_USER)
    take(stage, TWO_OF_A_USER)
    for _ in range(6):
        stage.pass_time(READER_RENEWAL_SECONDS)
        timers.ring()
        with pytest.raises(TooManyRequests):
            take(stage, TWO_OF_A_USER)


def test_a_reader_whose_process_was_killed_counts_no_more(stage: Stage, timers: Timers) -> None:
    take(stage, TWO_OF_A_USER)
    take(stage, TWO_OF_A_USER)
    stage.pass_time(READER_LEASE_SECONDS)
    take(stage, TWO_OF_A_USER)
    assert count_leases(stage)[1] == 1


def test_a_reader_that_stood_still_for_long_takes_nobodys_place(stage: Stage, timers: Timers) -> None:
    take(stage, TWO_OF_A_USER)
    stage.pass_time(READER_LEASE_SECONDS)
    take(stage, TWO_OF_A_USER)
    take(stage, TWO_OF_A_USER)
    timers.ring()
    assert count_leases(stage)[1] == 2


def test_a_lease_that_nobody_releases_is_not_renewed_for_ever(stage: Stage, timers: Timers) -> None:
    take(stage)
    for _ in range(100):
        stage.pass_time(READER_RENEWAL_SECONDS)
        timers.ring()
    assert not timers


def test_a_renewal_or_release_that_fails_does_no_harm(
    stage: Stage, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = take(stage)
    with monkeypatch.context() as patch:
        error = ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem")

        def fail(*_: Any) -> None:
            raise error

        patch.setattr(stage.resources.tables, "write_items", fail)
        timers.ring()
    assert len(timers) == 1
    timers.ring()
    lease.release()
    assert count_leases(stage) == [0, 0]


def test_writes_that_land_again_minutes_later_count_nobody(
    stage: Stage, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed: list[tuple[str, Any]] = []
    client = stage.resources.tables._client
    call = client._make_api_call

    def note(operation: str, params: Any) -> Any:
        if operation in ("TransactWriteItems", "UpdateItem"):
            landed.append((operation, params))
        return call(operation, params)

    monkeypatch.setattr(client, "_make_api_call", note)
    lease = take(stage, ONE_OF_A_USER)
    stage.pass_time(READER_RENEWAL_SECONDS)
    timers.ring()
    lease.release()
    assert len(landed) == 5
    stage.pass_time(TOKEN_SECONDS)
    for operation, params in landed[:]:
        with suppress(ClientError):
            call(operation, params | ({"ClientRequestToken": "another"} if "TransactItems" in params else {}))
    assert count_leases(stage) == [0, 0]
    take(stage, ONE_OF_A_USER)
    assert count_leases(stage) == [1, 1]
