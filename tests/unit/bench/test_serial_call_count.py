"""Calls one after the other count, calls side by side count once, and a thread counts on from where it began."""

import boto3
import pytest
from moto import mock_aws

from bench.serial_call_count import SeriesClock
from tests.resources import REGION


@pytest.fixture
def clock() -> SeriesClock:
    return SeriesClock()


def call(clock: SeriesClock, times: int = 1) -> None:
    for _ in range(times):
        clock.add_call("dynamodb.PutItem")


def test_calls_after_each_other_count(clock: SeriesClock) -> None:
    call(clock, 3)
    assert clock.calls_in_series == 3


def test_side_by_side_the_longest_row_counts(clock: SeriesClock) -> None:
    call(clock)
    clock.map_in_threads(lambda times: call(clock, times), [1, 3, 2], 3)
    assert clock.calls_in_series == 1 + 3


def test_a_thread_counts_on_and_a_thread_that_waits_for_it_continues_its_count(clock: SeriesClock) -> None:
    call(clock, 2)
    thread = clock.start_thread(lambda: call(clock, 5), "branch")
    call(clock)
    assert clock.calls_in_series == 3
    thread.join()
    assert clock.calls_in_series == 7


@mock_aws
def test_every_call_of_an_attached_client_counts(clock: SeriesClock) -> None:
    client = boto3.client("dynamodb", region_name=REGION)
    clock.attach(client)
    client.list_tables()
    client.list_tables()
    assert clock.calls_in_series == 2


@mock_aws
def test_a_call_counts_what_it_weighs() -> None:
    clock = SeriesClock({"dynamodb.ListTables": 5, "dynamodb.PutItem": 6}.__getitem__)
    client = boto3.client("dynamodb", region_name=REGION)
    clock.attach(client)
    client.list_tables()
    clock.map_in_threads(lambda times: call(clock, times), [1, 3, 2], 3)
    assert clock.calls_in_series == 5 + 3 * 6
