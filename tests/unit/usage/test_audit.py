"""What an audit says, against rows told one by one."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.usage.audit.audit_from_rollups import audit_usage
from tests.unit.usage.ledger_factories import TENANT, count_ledger_rows, make_usage, write_and_count, write_ledger_rows

AUDIT_CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
"""Of the contract: what the original computes."""


def test_one_text_only_turn_is_one_chat_with_its_tokens(resources: Resources) -> None:
    (case,) = [case for case in AUDIT_CASES if case["area"] == "auditRollup"]
    write_and_count(
        resources, make_usage(resources.clock.time(), prompt=123, completion=45, provider="ollama", model="e2e-model")
    )
    found = audit_usage(resources, TENANT)
    assert case["expected"]["totals"].items() <= found["totals"].items()
    assert [one["scope"] for one in found["byScope"]] == [case["expected"]["byScope"]]
    assert case["expected"]["byModel"].items() <= found["byModel"][0].items()


def test_the_first_audit_of_a_tenant_is_empty_and_complete(resources: Resources) -> None:
    found = audit_usage(resources, TENANT)
    assert set(found) == {"since", "totals", "byUser", "byScope", "byModel", "byDay"}
    assert found["byUser"] == found["byScope"] == found["byModel"] == found["byDay"] == []
    assert set(found["totals"].values()) == {0}


@pytest.mark.parametrize("zone", [None, "Pacific/Kiritimati"])
@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "9999-12-31T23:45Z", "9999-12-31T23:59:59-05:00"])
def test_from_the_last_moment_of_the_calendar_on_nothing_was_used(
    resources: Resources, since: str, zone: str | None
) -> None:
    write_and_count(resources, make_usage(resources.clock.time()))
    found = audit_usage(resources, TENANT, since, zone)
    assert found["since"].startswith("9999-12-31T23:")
    assert set(found["totals"].values()) == {0}


def test_each_row_has_what_the_contract_says_and_nothing_else(resources: Resources) -> None:
    write_and_count(resources, make_usage(resources.clock.time()))
    found = audit_usage(resources, TENANT)
    numbers = {"promptTokens", "completionTokens", "costUsd", "chatCount", "cacheReadTokens", "cacheCreationTokens"}
    assert set(found["totals"]) == numbers
    assert set(found["byUser"][0]) == numbers | {"userId", "userLabel"}
    assert set(found["byScope"][0]) == numbers | {"scope"}
    assert set(found["byModel"][0]) == numbers | {"providerId", "modelId"}
    assert set(found["byDay"][0]) == numbers | {"day"}


def test_a_cost_nobody_knows_is_told_apart_from_no_cost(resources: Resources) -> None:
    now = resources.clock.time()
    write_and_count(
        resources,
        make_usage(now, cost=0),
        make_usage(now, cost=0, priced=False, model="new"),
        make_usage(now, cost=0, user="bob"),
    )
    found = audit_usage(resources, TENANT)
    assert (found["totals"]["costUsd"], found["totals"]["unpricedRequests"]) == (0, 1)
    unpriced = {model["modelId"]: model.get("unpricedRequests") for model in found["byModel"]}
    assert unpriced == {"model-1": None, "new": 1}
    assert {user["userId"]: user.get("unpricedRequests") for user in found["byUser"]} == {"ada": 1, "bob": None}
    assert found["byScope"][0]["unpricedRequests"] == found["byDay"][0]["unpricedRequests"] == 1


def test_rows_from_before_prices_were_told_apart_are_counted_as_priced(resources: Resources) -> None:
    [row] = write_ledger_rows(resources, make_usage(resources.clock.time()))
    del row["priced"]
    count_ledger_rows(resources, [row])
    assert "unpricedRequests" not in audit_usage(resources, TENANT)["totals"]


@pytest.mark.parametrize(
    "case", [case for case in AUDIT_CASES if case["area"] == "localDay"], ids=lambda case: case["id"]
)
def test_a_row_is_on_the_viewers_own_day(resources: Resources, case: dict[str, Any]) -> None:
    write_and_count(resources, make_usage(case["input"]["instant"]))
    found = audit_usage(resources, TENANT, "2026-01-01", case["input"]["tz"])
    assert [one["day"] for one in found["byDay"]] == [case["expected"]]
