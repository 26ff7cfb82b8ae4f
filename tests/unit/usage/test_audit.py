"""What an audit says, against rows told one by one."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.usage.audit import audit
from tests.unit.usage.spending import TENANT, roll_up, spend, spent, write

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
"""Of the contract: what the original computes."""


def test_one_text_only_turn_is_one_chat_with_its_tokens(desk: Desk) -> None:
    (case,) = [case for case in CASES if case["area"] == "auditRollup"]
    spend(desk, spent(desk.clock.time(), prompt=123, completion=45, provider="ollama", model="e2e-model"))
    found = audit(desk, TENANT)
    assert case["expected"]["totals"].items() <= found["totals"].items()
    assert [one["scope"] for one in found["byScope"]] == [case["expected"]["byScope"]]
    assert case["expected"]["byModel"].items() <= found["byModel"][0].items()


def test_the_first_audit_of_a_tenant_is_empty_and_complete(desk: Desk) -> None:
    found = audit(desk, TENANT)
    assert set(found) == {"since", "totals", "byUser", "byScope", "byModel", "byDay"}
    assert found["byUser"] == found["byScope"] == found["byModel"] == found["byDay"] == []
    assert set(found["totals"].values()) == {0}


@pytest.mark.parametrize("zone", [None, "Pacific/Kiritimati"])
@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "9999-12-31T23:45Z", "9999-12-31T23:59:59-05:00"])
def test_from_the_last_moment_of_the_calendar_on_nothing_was_used(desk: Desk, since: str, zone: str | None) -> None:
    spend(desk, spent(desk.clock.time()))
    found = audit(desk, TENANT, since, zone)
    assert found["since"].startswith("9999-12-31T23:")
    assert set(found["totals"].values()) == {0}


def test_each_row_has_what_the_contract_says_and_nothing_else(desk: Desk) -> None:
    spend(desk, spent(desk.clock.time()))
    found = audit(desk, TENANT)
    numbers = {"promptTokens", "completionTokens", "costUsd", "chatCount", "cacheReadTokens", "cacheCreationTokens"}
    assert set(found["totals"]) == numbers
    assert set(found["byUser"][0]) == numbers | {"userId", "userLabel"}
    assert set(found["byScope"][0]) == numbers | {"scope"}
    assert set(found["byModel"][0]) == numbers | {"providerId", "modelId"}
    assert set(found["byDay"][0]) == numbers | {"day"}


def test_a_cost_nobody_knows_is_told_apart_from_no_cost(desk: Desk) -> None:
    now = desk.clock.time()
    spend(desk, spent(now, cost=0), spent(now, cost=0, priced=False, model="new"), spent(now, cost=0, user="bob"))
    found = audit(desk, TENANT)
    assert (found["totals"]["costUsd"], found["totals"]["unpricedRequests"]) == (0, 1)
    unpriced = {model["modelId"]: model.get("unpricedRequests") for model in found["byModel"]}
    assert unpriced == {"model-1": None, "new": 1}
    assert {user["userId"]: user.get("unpricedRequests") for user in found["byUser"]} == {"ada": 1, "bob": None}
    assert found["byScope"][0]["unpricedRequests"] == found["byDay"][0]["unpricedRequests"] == 1


def test_rows_from_before_prices_were_told_apart_are_counted_as_priced(desk: Desk) -> None:
    [row] = write(desk, spent(desk.clock.time()))
    del row["priced"]
    roll_up(desk, [row])
    assert "unpricedRequests" not in audit(desk, TENANT)["totals"]


@pytest.mark.parametrize("case", [case for case in CASES if case["area"] == "localDay"], ids=lambda case: case["id"])
def test_a_row_is_on_the_viewers_own_day(desk: Desk, case: dict[str, Any]) -> None:
    spend(desk, spent(case["input"]["instant"]))
    found = audit(desk, TENANT, "2026-01-01", case["input"]["tz"])
    assert [one["day"] for one in found["byDay"]] == [case["expected"]]
