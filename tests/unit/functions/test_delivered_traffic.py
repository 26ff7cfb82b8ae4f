"""Traffic of sites is counted in shares, on average exactly, and reported; a failure leaves the site up."""

import itertools
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.billing.make_usage_reports import make_usage_reports
from fermata.billing.usage_report import UsageReport, read_workspace_reports
from fermata.content_api import delivery_requests
from fermata.domain.workspace_plan import Subscription
from fermata.limits.delivered_traffic import TRAFFIC_SHARE_BYTES, count_traffic
from fermata.wire.auth.tenant_store import update_tenant
from functions.api import app
from tests.images import make_image
from tests.late_writes import repeat_single_writes
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import make_tenant
from tests.unit.functions.test_bulk_assets import store, upload
from tests.unit.functions.test_content import ContentClient, client

__all__ = ["client"]
BAKERY = "bakery"


def report(resources: Resources) -> list[UsageReport]:
    return make_usage_reports(resources, BAKERY, read_workspace_reports(resources, BAKERY))


def test_small_responses_count_on_average_what_they_have(resources: Resources) -> None:
    make_tenant(resources, BAKERY)
    update_tenant(resources, BAKERY, subscription=Subscription(plan="free"))
    draws = itertools.cycle(range(0, TRAFFIC_SHARE_BYTES, TRAFFIC_SHARE_BYTES // 16))
    for _ in range(32):
        count_traffic(resources, BAKERY, TRAFFIC_SHARE_BYTES // 4, lambda _below: next(draws))
    [found] = report(resources)
    assert (found.meter, found.quantity) == ("cdn_bandwidth_bytes", 8 * TRAFFIC_SHARE_BYTES)
    assert (found.included, found.exceeding) == (0, found.quantity)
    count_traffic(resources, BAKERY, 3 * TRAFFIC_SHARE_BYTES, lambda _below: 0)
    count_traffic(resources, BAKERY, -5, lambda _below: 0)
    assert [one.quantity for one in report(resources)] == [3 * TRAFFIC_SHARE_BYTES]
    assert report(resources) == []


def test_the_delivery_counts_what_it_sends_and_the_files_it_leads_to(
    client: ContentClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(delivery_requests, "count_traffic", lambda _resources, *facts: counted.append(facts))
    [stored] = store(client, upload(resources, make_image())).body["results"]
    token = client.send("POST", "shop/main/delivery-tokens", {"mode": "published"}).body["token"]
    assert get(f"/delivery/{token}/assets/{stored['document']['id']}/original")["statusCode"] == 302
    assert counted == [(BAKERY, stored["document"]["locales"]["data"]["size"])]
    shown = get(f"/delivery/{token}/documents/asset")
    assert counted[1] == (BAKERY, len(shown["body"]))
    etag = {name.lower(): value for name, value in shown["headers"].items()}["etag"]
    assert get(f"/delivery/{token}/documents/asset", {"If-None-Match": etag})["statusCode"] == 304
    assert len(counted) == 2


def get(path: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = app.handler(make_proxy_event("GET", path, headers or {}), None)
    return answer


def test_a_response_whose_count_lands_twice_counts_once(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tenant(resources, BAKERY)
    repeat_single_writes(resources, monkeypatch)
    count_traffic(resources, BAKERY, TRAFFIC_SHARE_BYTES)
    count_traffic(resources, BAKERY, TRAFFIC_SHARE_BYTES)
    assert [one.quantity for one in report(resources)] == [2 * TRAFFIC_SHARE_BYTES]


def test_a_response_that_cannot_be_counted_is_sent(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no table")

    monkeypatch.setattr(resources.tables, "write_items", fail)
    count_traffic(resources, BAKERY, TRAFFIC_SHARE_BYTES)
    assert "billing.traffic_uncounted" in caplog.text
