"""Requests that share a process, as on managed instances and in the local front door, do not disturb each other."""

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from fermata.aws import cache, observability
from fermata.aws.resources import Resources, _create_client
from fermata.client_protocols.log_response import get_abandonment_watcher, get_log_poller
from tests.resources import TestClock


class MetricsWithAnotherRequest(dict[str, float]):
    """Metrics of a request. While they are put on their line, another request of the process emits its own."""

    def items(self) -> Any:
        for pair in super().items():
            yield pair
            other = threading.Thread(target=observability.emit_metrics, args=({"TurnsEnded": 1}, {"how": "done"}))
            other.start()
            other.join()


def test_metrics_of_two_requests_are_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    observability.emit_metrics(MetricsWithAnotherRequest(TurnsStarted=1))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{name for name in line if name.startswith("Turns")} for line in lines] == [{"TurnsEnded"}, {"TurnsStarted"}]
    assert [line.get("how") for line in lines] == ["done", None]


class ClockWithAnotherRequest(TestClock):
    """A clock that lets another request begin while the first one makes what both will share."""

    begin_other: Callable[[], object] | None = None

    def _begin(self) -> None:
        begin, self.begin_other = self.begin_other, None
        if begin:
            other = threading.Thread(target=begin)
            other.start()
            other.join()

    def new_condition(self) -> threading.Condition:
        self._begin()
        return super().new_condition()

    def new_lock(self) -> Any:
        self._begin()
        return super().new_lock()


@pytest.mark.parametrize("get_shared", [get_log_poller, get_abandonment_watcher])
def test_two_first_streams_share_the_poller_and_the_count_of_readers(
    resources: Resources, get_shared: Callable[[Resources], object]
) -> None:
    clock = ClockWithAnotherRequest()
    shared, found = Resources(resources.settings, clock), []
    clock.begin_other = lambda: found.append(get_shared(shared))
    found.append(get_shared(shared))
    assert len(found) == 2
    assert found[0] is found[1] is get_shared(shared)


def test_what_streams_share_outlives_a_full_cache(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_CACHE_ENTRIES", 4)
    shared = Resources(resources.settings, TestClock())
    poller = get_log_poller(shared)
    for number in range(9):
        shared.cache.put_value(number, 60, "a value")
    assert get_log_poller(shared) is poller


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let boto3 create a client only while it creates no other, and give the first one time to be disturbed."""
    created: list[str] = []
    creating, entered = threading.Lock(), threading.Barrier(2)

    def create(service: str, **_: object) -> object:
        assert creating.acquire(blocking=False), "two threads create clients at once"
        with contextlib.suppress(threading.BrokenBarrierError):
            entered.wait(0.2)
        created.append(service)
        creating.release()
        return object()

    monkeypatch.setattr(boto3, "client", create)
    monkeypatch.setattr("fermata.aws.resources._clients_created_early", {})
    return created


def test_two_first_requests_create_their_clients_one_after_the_other(
    resources: Resources, one_at_a_time: list[str]
) -> None:
    threads = [threading.Thread(target=_create_client, args=(service,)) for service in ("dynamodb", "s3")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one_at_a_time) == ["dynamodb", "s3"]
