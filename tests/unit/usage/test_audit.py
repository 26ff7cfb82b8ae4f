"""What an audit says, against rows told one by one."""

from datetime import datetime
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.usage.audit import audit
from tests.desk import TestClock
from tests.unit.usage.spending import TENANT, spend, spent


def row(found: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    (it,) = [one for one in found if facts.items() <= one.items()]
    return it


def at(clock: TestClock, moment: str) -> None:
    clock.now = datetime.fromisoformat(moment).timestamp()


def test_one_text_only_turn_is_one_chat_with_its_tokens(desk: Desk) -> None:
    """Case C165."""
    spend(desk, spent(desk.clock.time(), prompt=123, completion=45, provider="ollama", model="e2e-model"))
    found = audit(desk, TENANT)
    assert {"promptTokens": 123, "completionTokens": 45, "chatCount": 1}.items() <= found["totals"].items()
    assert [one["scope"] for one in found["byScope"]] == ["site"]
    assert {"providerId": "ollama", "modelId": "e2e-model"}.items() <= found["byModel"][0].items()


def test_the_first_audit_of_a_tenant_is_empty_and_complete(desk: Desk) -> None:
    found = audit(desk, TENANT)
    assert set(found) == {"since", "totals", "byUser", "byScope", "byModel", "byDay"}
    assert found["byUser"] == found["byScope"] == found["byModel"] == found["byDay"] == []
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


@pytest.mark.parametrize(
    ("tz", "instant", "day"),
    [
        ("Europe/Bratislava", "2026-06-01T22:30:00.000Z", "2026-06-02"),
        ("UTC", "2026-06-01T22:30:00.000Z", "2026-06-01"),
        ("Not/AZone", "2026-06-01T22:30:00.000Z", "2026-06-01"),
        ("Asia/Kathmandu", "2026-01-01T18:14:59.000Z", "2026-01-01"),
        ("Europe/Bratislava", "2026-10-25T23:00:00.000Z", "2026-10-26"),
        ("Pacific/Kiritimati", "2026-01-01T10:00:00.000Z", "2026-01-02"),
    ],
)
def test_a_row_is_on_the_viewers_own_day(desk: Desk, tz: str, instant: str, day: str) -> None:
    """Cases C156 to C164."""
    spend(desk, spent(instant))
    assert [one["day"] for one in audit(desk, TENANT, "2026-01-01", tz)["byDay"]] == [day]
