"""The sweep over open turns, at sizes where a minute and a quota do not suffice for all of them.

Every call takes simulated time, so that a sweep that would outlast its function shows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import pytest

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_client import DynamoClient
from fermata.aws.dynamodb_items_and_writes import serialize_item
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.aws.workflow import TurnWorkflow
from fermata.turns.recover.open_turn_list import MAX_PERIOD_MINUTES
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.turn import build_open_shard_key, build_turn_pk
from fermata.turns.turn_log import build_entry_key
from fermata.turns.turn_state_from_log import TurnState
from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.chaos.memory_aws.errors import aws_error
from tests.chaos.memory_aws.tables import MemoryTable
from tests.resources import TABLE_NAMES, TestClock

MANY = 100_000
FUNCTION_SECONDS = 60
DESCRIBE_QUOTA_PER_MINUTE = 600
"""DescribeExecution is refilled ten times a second in the smaller regions."""
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:fermata-turn"
CALL_SECONDS = {
    "query": 0.008,
    "query_index": 0.1,
    "get_item": 0.008,
    "batch_get_item": 0.06,
    "describe_execution": 0.03,
    "start_execution": 0.06,
}
"""On a function with 512 MB, whose processor four threads share."""


class SweepClock(TestClock):
    def map_in_threads(self, function: Callable[[Any], Any], arguments: Sequence[Any], max_threads: int) -> list[Any]:
        """Run one after the other; time passes as if they had run at once."""
        begun = self.now
        results = [function(argument) for argument in arguments]
        self.now = begun + (self.now - begun) / min(max_threads, len(arguments))
        return results


class Account:
    """An account with open turns: its tables, its executions, and how often each call was made."""

    def __init__(self) -> None:
        self.clock = SweepClock()
        self.table = MemoryTable("bridges", {"open": ("open", "openSince")}, frozenset({"open"}))
        self._dynamodb = MemoryDynamoDB([self.table], self.clock.time)
        self.calls: Counter[str] = Counter()
        self.described: list[str] = []
        self.started: list[str] = []
        names = {f"{name}_table": name for name in TABLE_NAMES}
        settings = Settings(**names, bucket="b", key_id="k", state_machine_arn=MACHINE)  # type: ignore[arg-type]
        self.resources = Resources(settings, self.clock)
        self.resources.__dict__.update(
            tables=DynamoClient(self, self.clock.sleep),  # type: ignore[arg-type]
            workflow=TurnWorkflow(self, MACHINE),  # type: ignore[arg-type]
        )

    # the calls of boto3 clients

    def query(self, **request: Any) -> Any:
        self._take("query_index" if "IndexName" in request else "query")
        return self._dynamodb.query(**request)

    def get_item(self, **request: Any) -> Any:
        self._take("get_item")
        return self._dynamodb.get_item(**request)

    def batch_get_item(self, **request: Any) -> Any:
        self._take("batch_get_item")
        return self._dynamodb.batch_get_item(**request)

    def describe_execution(self, *, executionArn: str) -> Any:
        self._take("describe_execution")
        turn = executionArn.rpartition(":")[2].removesuffix("-1")
        self.described.append(turn)
        if self._has_second_entry(turn):
            return {"status": "RUNNING"}
        raise aws_error("ExecutionDoesNotExist", "DescribeExecution")

    def start_execution(self, *, name: str, **_: Any) -> Any:
        self._take("start_execution")
        turn = name.removesuffix("-1")
        if self._has_second_entry(turn):
            raise aws_error("ExecutionAlreadyExists", "StartExecution")
        self.started.append(turn)
        self._put_entry(turn, 2, self.clock.now)
        return {}

    def _take(self, call: str) -> None:
        self.calls[call] += 1
        self.clock.advance(CALL_SECONDS[call])

    # turns

    def add_turns(
        self, ages: Iterable[float], *, tenant: str = "bakery", silence: float | None = None, is_started: bool = True
    ) -> list[str]:
        """Store open turns of these ages in seconds, whose logs stand still for `silence` or, with None, since then.

        A negative silence is of a log that moves on during the sweep.
        """
        turns = []
        for age in ages:
            turn = f"{tenant}.{len(self.table.partitions)}"
            since = self.clock.now - age
            pk = build_turn_pk(tenant, turn)
            row = _build_turn_row(tenant, turn, since)
            self.table.replace((pk, "turn"), row)
            self._put_entry(turn, 1, since)
            if is_started:
                self._put_entry(turn, 2, self.clock.now - (age if silence is None else silence))
            turns.append(turn)
        return turns

    def _put_entry(self, turn: str, number: int, at: float) -> None:
        pk = build_turn_pk(turn.partition(".")[0], turn)
        sk, at_ms = build_entry_key(number), str(int(at * 1000))
        entry = _build_entry("calls" if number > 1 else "started")
        self.table.replace((pk, sk), entry | {"pk": {"S": pk}, "sk": {"S": sk}, "at": {"N": at_ms}})

    def _has_second_entry(self, turn: str) -> bool:
        return self.table.find((build_turn_pk(turn.partition(".")[0], turn), build_entry_key(2))) is not None

    def sweep(self) -> float:
        """Run a sweep and return the seconds that it took; then the next minute begins."""
        begun = self.clock.now
        recover_open_turns(self.resources)
        seconds = self.clock.now - begun
        self.clock.now = begun + MINUTE
        return seconds


@cache
def _build_entry(phase: Any) -> Any:
    """Build what all entries have in common: a hundred thousand are stored."""
    state = json.dumps(TurnState(phase=phase).to_item())
    return serialize_item({"count": 1, "s": state, "id": "x", "data": "[]"})


def _build_turn_row(tenant: str, turn: str, since: float) -> Any:
    data = {
        "id": turn,
        "tenant": tenant,
        "started_ms": int(since * 1000),
        "expires": int(since + 37 * DAY),
        **dict.fromkeys(("user", "scope", "conversation", "provider", "model", "credential"), "x"),
        "credential_version": 1,
        "capabilities": [],
        "dialect": "fermata",
        "prompt_version": "1",
        "situation": "",
        "max_rounds": 50,
    }
    texts = {"pk": build_turn_pk(tenant, turn), "sk": "turn", "open": build_open_shard_key(turn), "state": "open"}
    texts |= {"openSince": iso_from_epoch(since), "data": json.dumps(data)}
    numbers = {"ttl": int(since + 37 * DAY), "v": 1, "n": 1}
    return {name: {"S": text} for name, text in texts.items()} | {
        name: {"N": str(number)} for name, number in numbers.items()
    }


@pytest.fixture
def account() -> Account:
    return Account()


def test_a_sweep_of_nothing_reads_the_index_and_asks_nothing(account: Account) -> None:
    account.sweep()
    assert account.calls == {"query_index": 5}, "four parts of the open turns, and what webhooks were not told"


@pytest.mark.exhaustive
def test_of_a_hundred_thousand_turns_that_wait_for_people_the_workflow_is_asked_within_its_quota(
    account: Account,
) -> None:
    account.add_turns(30 * DAY * number / MANY + HOUR for number in range(MANY))
    assert account.sweep() < FUNCTION_SECONDS
    assert 200 < account.calls["describe_execution"] <= DESCRIBE_QUOTA_PER_MINUTE / 2
    assert account.calls["query_index"] < 100, "keys only, some thousand a page"
    assert not account.started


@pytest.mark.exhaustive
def test_of_a_hundred_thousand_turns_that_work_only_those_that_never_started_are_started(account: Account) -> None:
    account.add_turns((11 + 100 * number / MANY for number in range(MANY - 40)), silence=-MINUTE)
    unstarted = account.add_turns((20 + number for number in range(40)), is_started=False)
    assert account.sweep() < FUNCTION_SECONDS
    assert account.started == list(reversed(unstarted)), "the oldest first"
    assert not set(account.described) - set(unstarted), "a log that moved says enough"


def test_after_an_outage_of_most_of_an_hour_turns_are_started_oldest_first_and_tenants_take_turns(
    account: Account,
) -> None:
    crowd = account.add_turns((2500 + number / 100 for number in range(3000)), tenant="crowd", is_started=False)
    few = account.add_turns((150, 160, 170), tenant="few", is_started=False)
    sweeps = 0
    while len(account.started) < len(crowd) + len(few):
        assert account.sweep() < FUNCTION_SECONDS
        sweeps += 1
        if sweeps == 1:
            assert set(few) <= set(account.started[: 2 * len(few)])
            assert [turn for turn in account.started[:1000] if turn not in few] == list(reversed(crowd))[:997]
    assert sweeps <= 3, "more than a thousand a minute"


def test_every_silent_turn_is_asked_about_in_the_course_of_time(account: Account) -> None:
    """A crowd of one tenant does not keep the turns of another from it."""
    crowd = account.add_turns((HOUR + number for number in range(1500)), tenant="crowd")
    few = account.add_turns((HOUR + number for number in range(3)), tenant="few")
    begun = account.clock.now
    while account.clock.now - begun < HOUR / 4:
        account.sweep()
    assert set(few) <= set(account.described)
    while not set(crowd) <= set(account.described):
        account.sweep()
        assert account.clock.now - begun < 3 * HOUR


def test_a_young_turn_is_asked_about_every_minute_and_a_very_old_one_a_few_times_a_day(account: Account) -> None:
    (young,) = account.add_turns([5 * MINUTE])
    (old,) = account.add_turns([20 * DAY])
    for _ in range(3):
        account.sweep()
    assert account.described.count(young) == 3
    for _ in range(MAX_PERIOD_MINUTES):
        account.sweep()
    assert account.described.count(old) in (1, 2)
