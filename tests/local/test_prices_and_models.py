"""Test the seeded prices and model lists of the local cloud."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from fermata_client import FermataClient, run_turn
from local.cloud import LocalCloud
from local.seed import TENANT
from local.seeded_models import DEMO_MODEL_LABEL
from tests.waiting import BACKSTOP_SECONDS


@pytest.fixture
def http(cloud: LocalCloud) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {cloud.token}"}
    with httpx.Client(base_url=f"{cloud.url}/admin/api/ai", headers=headers, timeout=BACKSTOP_SECONDS) as client:
        yield client


def test_a_turn_with_the_demo_model_costs_what_the_recorded_catalogue_says(
    cloud: LocalCloud, service: FermataClient
) -> None:
    bridge = run_turn(service, "data", "Hello").view.bridge_id
    rows = cloud.resources().tables.query_items(
        cloud.get_output("UsageTableName"), f"t#{TENANT}#turn#{bridge}", min_sk="r", max_sk="s"
    )
    assert rows
    for row in rows:
        fresh, rest = row["prompt"] + row["cacheRead"] / Decimal(10), row["cacheCreation"] * Decimal("1.25")
        assert row["cost"] == (fresh + rest + 5 * row["completion"]) / 1_000_000 > 0


def test_the_models_of_the_seeded_credential_have_prices_and_windows(http: httpx.Client) -> None:
    credentials = http.get("/credentials").json()["credentials"]
    (credential,) = [one for one in credentials if one["displayLabel"] == DEMO_MODEL_LABEL]
    answer = http.get("/providers/anthropic/models", params={"credentialId": credential["id"]})
    assert answer.status_code == 200
    (model,) = answer.json()["models"]
    assert (model["id"], model["contextWindow"]) == ("fermata-demo", 200_000)
    assert model["pricing"] == {"inputPerMTok": 1.0, "outputPerMTok": 5.0}


def test_a_local_provider_url_is_created_tested_listed_and_removed(cloud: LocalCloud, http: httpx.Client) -> None:
    assert cloud.model is not None
    new = {"providerId": "anthropic", "authMode": "baseUrl", "displayLabel": "Mine", "baseUrl": cloud.model.url}
    created = http.post("/credentials", json=new | {"apiKey": "any"})
    assert created.status_code == 201
    mine: Any = created.json()["credential"]
    assert http.post(f"/credentials/{mine['id']}/test").json() == {"ok": True, "modelCount": 1}
    listed = http.get("/providers/anthropic/models", params={"credentialId": mine["id"]}).json()["models"]
    assert [model["id"] for model in listed] == ["fermata-demo"]
    assert http.delete(f"/credentials/{mine['id']}").json() == {"ok": True}


def test_a_private_address_is_refused(http: httpx.Client) -> None:
    new = {"providerId": "ollama", "authMode": "baseUrl", "displayLabel": "Inside", "baseUrl": "http://169.254.169.254"}
    refused = http.post("/credentials", json=new)
    assert (refused.status_code, "must begin with https" in refused.json()["error"]) == (400, True)


def test_the_deployed_refresh_skips_a_fresh_catalogue(cloud: LocalCloud) -> None:
    result = cloud.invoke_function("refresh_prices", {"v": 1})
    assert (result["how"], result["models"] > 5) == ("fresh", True)
    assert cloud.invoke_function("refresh_prices", {"v": 1, "force": True})["how"] == "fetched"
