"""Inject faults by rules in files; each rule fires once."""

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fermata.aws import fault_injection
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.fault_injection import FaultInjector
from fermata.aws.resources import Resources
from tests.faults import ProcessDied
from tests.waiting import BACKSTOP_SECONDS

PUT = "dynamodb.PutItem"


@pytest.fixture
def faulty_resources(resources: Resources, tmp_path: Path) -> Resources:
    FaultInjector(tmp_path).attach(resources.tables._client)
    return resources


def write_rule(folder: Path, name: str = "rule", **rule: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"call": PUT, "when": "before", "do": "lost"} | rule))
    return path


def put_item(resources: Resources, sk: str = "b") -> None:
    resources.tables.write_items(Put("bridges", {"pk": "a", "sk": sk}))


def test_without_rules_nothing_happens(faulty_resources: Resources) -> None:
    put_item(faulty_resources)
    assert faulty_resources.tables.get_item("bridges", "a", "b") == {"pk": "a", "sk": "b"}


def test_a_rule_is_carried_out_once(faulty_resources: Resources, tmp_path: Path) -> None:
    path = write_rule(tmp_path)
    with pytest.raises(ConnectionClosedError):
        put_item(faulty_resources)
    assert not path.exists()
    put_item(faulty_resources)


@pytest.mark.parametrize(("when", "is_stored"), [("before", False), ("after", True)])
def test_a_rule_acts_before_or_after_the_call(
    faulty_resources: Resources, tmp_path: Path, when: str, is_stored: bool
) -> None:
    write_rule(tmp_path, when=when)
    with pytest.raises(ConnectionClosedError):
        put_item(faulty_resources)
    assert (faulty_resources.tables.get_item("bridges", "a", "b") is not None) is is_stored


@pytest.mark.parametrize("other", [{"call": "dynamodb.GetItem"}, {"contains": "something else"}])
def test_a_rule_waits_for_its_own_call(faulty_resources: Resources, tmp_path: Path, other: dict[str, str]) -> None:
    path = write_rule(tmp_path, **other)
    put_item(faulty_resources)
    assert path.exists()


def test_a_rule_may_let_some_calls_pass(faulty_resources: Resources, tmp_path: Path) -> None:
    write_rule(tmp_path, skip=2)
    put_item(faulty_resources)
    put_item(faulty_resources)
    with pytest.raises(ConnectionClosedError):
        put_item(faulty_resources)


def test_a_rule_may_raise_any_error(faulty_resources: Resources, tmp_path: Path) -> None:
    write_rule(tmp_path, do="error:AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        put_item(faulty_resources)


def test_a_refused_transaction_may_name_its_reason(faulty_resources: Resources, tmp_path: Path) -> None:
    write_rule(tmp_path, call="dynamodb.TransactWriteItems", do="error:TransactionCanceledException:ValidationError")
    with pytest.raises(ClientError) as refused:
        faulty_resources.tables.write_items(*(Put("bridges", {"pk": "a", "sk": str(number)}) for number in range(2)))
    response: dict[str, Any] = {**refused.value.response}
    assert response["CancellationReasons"] == [{"Code": "ValidationError"}]


def test_a_rule_may_end_the_process(
    faulty_resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_status: int) -> None:
        raise ProcessDied

    monkeypatch.setattr("fermata.aws.fault_injection.os._exit", die)
    write_rule(tmp_path, do="exit")
    with pytest.raises(ProcessDied):
        put_item(faulty_resources)


def test_a_rule_may_make_a_call_slow(
    faulty_resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    monkeypatch.setattr(fault_injection, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=delays.append))
    write_rule(tmp_path, do="delay:2.5")
    put_item(faulty_resources)
    assert delays == [2.5]


def test_a_table_of_latencies_makes_every_call_that_it_names_take_so_long(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time passes before the call takes place."""
    (tmp_path / "latencies").write_text(json.dumps({PUT: 40_000}))
    now, sleeps, stored_at_sleep = 1000.0, [], []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        sleeps.append(seconds)
        stored_at_sleep.append(len(resources.tables.query_items("bridges", "a")))

    monkeypatch.setattr(fault_injection, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    FaultInjector(tmp_path).attach(resources.tables._client)
    put_item(resources, "b")
    put_item(resources, "c")
    assert resources.tables.get_item("bridges", "a", "b") is not None
    assert sleeps == [20.0, 20.0, 20.0, 20.0]
    assert stored_at_sleep == [0, 1, 1, 2]


def test_a_call_can_wait_for_a_file(faulty_resources: Resources, tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_rule(tmp_path, do=f"until:{file}")
    caller = threading.Thread(target=put_item, args=(faulty_resources,))
    caller.start()
    caller.join(0.05)
    assert caller.is_alive()
    file.touch()
    caller.join(BACKSTOP_SECONDS)
    assert not caller.is_alive()


def test_two_processes_share_a_rule(resources: Resources, tmp_path: Path) -> None:
    write_rule(tmp_path)
    first, second = FaultInjector(tmp_path), FaultInjector(tmp_path)
    with pytest.raises(ConnectionClosedError):
        first.apply_rules("before", PUT, "")
    second.apply_rules("before", PUT, "")


def test_an_unknown_action_is_an_error(faulty_resources: Resources, tmp_path: Path) -> None:
    write_rule(tmp_path, do="dance")
    with pytest.raises(ValueError, match="'dance'"):
        put_item(faulty_resources)


@pytest.mark.parametrize(("stage", "has_rules"), [("local", True), ("dev", False), ("prod", False)])
def test_rules_apply_on_the_local_stage_only(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, has_rules: bool
) -> None:
    attached: list[object] = []
    monkeypatch.setattr(fault_injection.FaultInjector, "attach", lambda _self, client: attached.append(client))
    settings = resources.settings.model_copy(update={"fermata_stage": stage, "fermata_faults": str(tmp_path)})
    assert Resources(settings, resources.clock).tables
    assert bool(attached) is has_rules


def test_the_wait_for_a_file_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fault_injection, "MAX_FAULT_WAIT_SECONDS", 0.02)
    started = time.monotonic()
    fault_injection.inject_fault(f"until:{tmp_path / 'never'}", PUT)
    assert time.monotonic() - started >= 0.02
