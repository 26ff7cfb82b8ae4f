"""Audits from rollups: their rows, sums, and local days."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.usage.audit.audit_from_rollups import audit_usage
from tests.unit.usage.ledger_factories import TENANT, count_ledger_rows, make_usage, write_and_count, write_ledger_rows

AUDIT_CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
"""Inputs, and what Instatic's server computes from them."""


def test_one_text_only_turn_is_one_chat_with_its_tokens(resources: Resources) -> None:
    (case,) = [case for case in AUDIT_CASES if case["area"] == "auditRollup"]
    write_and_count(
        resources, make_usage(resources.clock.time(), prompt=123, completion=45, provider="ollama", model="e2e-model")
    )
    audit = audit_usage(resources, TENANT)
    assert case["expected"]["totals"].items() <= audit["totals"].items()
    assert [row["scope"] for row in audit["byScope"]] == [case["expected"]["byScope"]]
    assert case["expected"]["byModel"].items() <= audit["byModel"][0].items()


def test_the_first_audit_of_a_tenant_is_empty_and_complete(resources: Resources) -> None:
    audit = audit_usage(resources, TENANT)
    assert set(audit) == {"since", "totals", "byUser", "byScope", "byModel", "byDay"}
    assert audit["byUser"] == audit["byScope"] == audit["byModel"] == audit["byDay"] == []
    assert set(audit["totals"].values()) == {0}


@pytest.mark.parametrize("zone", [None, "Pacific/Kiritimati"])
@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "9999-12-31T23:45Z", "9999-12-31T23:59:59-05:00"])
def test_an_audit_from_the_last_quarter_of_the_calendar_on_is_empty(
    resources: Resources, since: str, zone: str | None
) -> None:
    write_and_count(resources, make_usage(resources.clock.time()))
    audit = audit_usage(resources, TENANT, since, zone)
    assert audit["since"].startswith("9999-12-31T23:")
    assert set(audit["totals"].values()) == {0}


def test_each_row_has_the_members_of_instatics_server_and_no_other(resources: Resources) -> None:
    write_and_count(resources, make_usage(resources.clock.time()))
    audit = audit_usage(resources, TENANT)
    numbers = {"promptTokens", "completionTokens", "costUsd", "chatCount", "cacheReadTokens", "cacheCreationTokens"}
    assert set(audit["totals"]) == numbers
    assert set(audit["byUser"][0]) == numbers | {"userId", "userLabel"}
    assert set(audit["byScope"][0]) == numbers | {"scope"}
    assert set(audit["byModel"][0]) == numbers | {"providerId", "modelId"}
    assert set(audit["byDay"][0]) == numbers | {"day"}


def test_an_unknown_cost_is_distinguished_from_no_cost(resources: Resources) -> None:
    now = resources.clock.time()
    write_and_count(
        resources,
        make_usage(now, cost=0),
        make_usage(now, cost=0, is_priced=False, model="new"),
        make_usage(now, cost=0, user="bob"),
    )
    audit = audit_usage(resources, TENANT)
    assert (audit["totals"]["costUsd"], audit["totals"]["unpricedRequests"]) == (0, 1)
    unpriced = {model["modelId"]: model.get("unpricedRequests") for model in audit["byModel"]}
    assert unpriced == {"model-1": None, "new": 1}
    assert {user["userId"]: user.get("unpricedRequests") for user in audit["byUser"]} == {"ada": 1, "bob": None}
    assert audit["byScope"][0]["unpricedRequests"] == audit["byDay"][0]["unpricedRequests"] == 1


def test_older_rows_without_the_attribute_priced_count_as_priced(resources: Resources) -> None:
    [row] = write_ledger_rows(resources, make_usage(resources.clock.time()))
    del row["priced"]
    count_ledger_rows(resources, [row])
    assert "unpricedRequests" not in audit_usage(resources, TENANT)["totals"]


@pytest.mark.parametrize(
    "case", [case for case in AUDIT_CASES if case["area"] == "localDay"], ids=lambda case: case["id"]
)
def test_a_row_counts_on_the_local_day_of_the_viewer(resources: Resources, case: dict[str, Any]) -> None:
    write_and_count(resources, make_usage(case["input"]["instant"]))
    audit = audit_usage(resources, TENANT, "2026-01-01", case["input"]["tz"])
    assert [row["day"] for row in audit["byDay"]] == [case["expected"]]
