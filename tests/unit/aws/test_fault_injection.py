"""The faults of the tests: each rule is carried out once, by whoever takes its file."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fermata.aws import fault_injection
from fermata.aws.dynamodb import Put
from fermata.aws.fault_injection import FaultInjector
from fermata.aws.resources import Resources
from tests.faults import ProcessDied

PUT = "dynamodb.PutItem"


@pytest.fixture
def watched(resources: Resources, tmp_path: Path) -> Resources:
    FaultInjector(tmp_path).attach(resources.tables._client)
    return resources


def order(folder: Path, name: str = "rule", **rule: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"call": PUT, "when": "before", "do": "lost"} | rule))
    return path


def put(resources: Resources, sk: str = "b") -> None:
    resources.tables.write_items(Put("bridges", {"pk": "a", "sk": sk}))


def test_without_rules_nothing_happens(watched: Resources) -> None:
    put(watched)
    assert watched.tables.get_item("bridges", "a", "b") == {"pk": "a", "sk": "b"}


def test_a_rule_is_carried_out_once(watched: Resources, tmp_path: Path) -> None:
    path = order(tmp_path)
    with pytest.raises(ConnectionClosedError):
        put(watched)
    assert not path.exists()
    put(watched)


@pytest.mark.parametrize(("when", "is_stored"), [("before", False), ("after", True)])
def test_a_rule_acts_before_or_after_the_call(watched: Resources, tmp_path: Path, when: str, is_stored: bool) -> None:
    order(tmp_path, when=when)
    with pytest.raises(ConnectionClosedError):
        put(watched)
    assert (watched.tables.get_item("bridges", "a", "b") is not None) is is_stored


@pytest.mark.parametrize("other", [{"call": "dynamodb.GetItem"}, {"contains": "something else"}])
def test_a_rule_waits_for_its_own_call(watched: Resources, tmp_path: Path, other: dict[str, str]) -> None:
    path = order(tmp_path, **other)
    put(watched)
    assert path.exists()


def test_a_rule_may_let_some_calls_pass(watched: Resources, tmp_path: Path) -> None:
    order(tmp_path, skip=2)
    put(watched)
    put(watched)
    with pytest.raises(ConnectionClosedError):
        put(watched)


def test_a_rule_may_raise_any_error(watched: Resources, tmp_path: Path) -> None:
    order(tmp_path, do="error:AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        put(watched)


def test_a_refused_transaction_may_name_its_reason(watched: Resources, tmp_path: Path) -> None:
    order(tmp_path, call="dynamodb.TransactWriteItems", do="error:TransactionCanceledException:ValidationError")
    with pytest.raises(ClientError) as refused:
        watched.tables.write_items(*(Put("bridges", {"pk": "a", "sk": str(number)}) for number in range(2)))
    response: dict[str, Any] = {**refused.value.response}
    assert response["CancellationReasons"] == [{"Code": "ValidationError"}]


def test_a_rule_may_end_the_process(watched: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_status: int) -> None:
        raise ProcessDied

    monkeypatch.setattr("fermata.aws.fault_injection.os._exit", ends)
    order(tmp_path, do="exit")
    with pytest.raises(ProcessDied):
        put(watched)


def test_a_rule_may_make_a_call_slow(watched: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("fermata.aws.fault_injection.time.sleep", slept.append)
    order(tmp_path, do="delay:2.5")
    put(watched)
    assert slept == [2.5]


def test_a_call_may_stand_before_a_gate_until_it_opens(watched: Resources, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    order(tmp_path, do=f"until:{gate}")
    through = threading.Thread(target=put, args=(watched,))
    through.start()
    through.join(0.05)
    assert through.is_alive()
    gate.touch()
    through.join(5)
    assert not through.is_alive()


def test_two_processes_share_a_rule(resources: Resources, tmp_path: Path) -> None:
    order(tmp_path)
    first, second = FaultInjector(tmp_path), FaultInjector(tmp_path)
    with pytest.raises(ConnectionClosedError):
        first.apply_rules("before", PUT, "")
    second.apply_rules("before", PUT, "")


def test_a_rule_that_means_nothing_says_so(watched: Resources, tmp_path: Path) -> None:
    order(tmp_path, do="dance")
    with pytest.raises(ValueError, match="'dance'"):
        put(watched)


@pytest.mark.parametrize(("stage", "is_watched"), [("local", True), ("dev", False), ("prod", False)])
def test_only_the_local_stage_obeys(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, is_watched: bool
) -> None:
    attached: list[object] = []
    monkeypatch.setattr(fault_injection.FaultInjector, "attach", lambda _self, client: attached.append(client))
    settings = resources.settings.model_copy(update={"fermata_stage": stage, "fermata_faults": str(tmp_path)})
    assert Resources(settings, resources.clock).tables
    assert bool(attached) is is_watched


def test_no_gate_stays_shut_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fault_injection, "MAX_FAULT_WAIT_SECONDS", 0.02)
    began = time.monotonic()
    fault_injection.inject_fault(f"until:{tmp_path / 'never'}", PUT)
    assert time.monotonic() - began >= 0.02
