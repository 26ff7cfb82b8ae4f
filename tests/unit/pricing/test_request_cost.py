"""Sources of a request's cost: the provider or the catalogue."""

import logging
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.domain.model_io import TokenUsage
from fermata.drivers.providers.openrouter import get_reported_cost
from fermata.pricing import catalogue
from fermata.pricing.request_cost import RequestCost, get_request_cost
from tests.resources import TestClock, resources_of_new_process
from tests.unit.pricing.recorded_cases import case_name, catalogue_body, catalogue_entry, read_cases

TOKENS = TokenUsage(prompt=1_000, completion=100)


@pytest.fixture(autouse=True)
def priced(resources: Resources) -> None:
    catalogue.store_catalogue(
        resources, catalogue.parse_catalogue(catalogue_body(catalogue_entry("anthropic/claude-sonnet-4.5")), 7)
    )


def test_a_listed_model_is_priced_by_the_catalogue(resources: Resources) -> None:
    charge = get_request_cost(resources, "anthropic", "claude-sonnet-4-5-20250929", TOKENS)
    assert (charge.cost, charge.is_known) == (Decimal("0.0045"), True)
    assert charge.price is not None
    assert charge.price.output_per_mtok == 15


@pytest.mark.parametrize("case", read_cases("resolveCostUsd"), ids=case_name)
def test_an_unpriced_model_costs_nothing_as_in_the_original(resources: Resources, case: Any) -> None:
    charge = get_request_cost(resources, case["input"]["provider"], case["input"]["model"], TOKENS)
    assert charge.cost == case["expected"]


def test_ollama_is_free_without_a_look_into_the_catalogue(resources: Resources) -> None:
    process = resources_of_new_process(resources)
    assert get_request_cost(process, "ollama", "claude-sonnet-4.5", TOKENS) == RequestCost(cost=Decimal(0))
    assert "tables" not in process.__dict__


def test_an_unknown_cost_is_not_a_free_one_and_is_warned_of_once(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert get_request_cost(resources, "anthropic", "claude-99", TOKENS) == RequestCost(
                cost=Decimal(0), is_known=False
            )
        assert [record.message for record in caplog.records] == ["pricing.unknown_model"]
        clock.advance(6 * 3600 + 1)
        get_request_cost(resources, "anthropic", "claude-99", TOKENS)
    assert len(caplog.records) == 2


def test_every_openrouter_model_has_its_price_for_openrouter_only(resources: Resources) -> None:
    entries = (
        catalogue_entry("anthropic/claude-sonnet-4.5"),
        catalogue_entry("google/gemini-3", "0.000002", "0.00001"),
    )
    catalogue.store_catalogue(resources, catalogue.parse_catalogue(catalogue_body(*entries), 8))
    charge = get_request_cost(resources, "openrouter", "google/gemini-3", TOKENS)
    assert (charge.cost, charge.is_known) == (Decimal("0.003"), True)
    for provider in ("openai-compatible", "openai", "anthropic"):
        assert get_request_cost(resources, provider, "google/gemini-3", TOKENS).is_known is False


@pytest.mark.parametrize("reported", ["0.01234567", "0"])
def test_the_reported_cost_comes_first(resources: Resources, reported: str) -> None:
    tokens = TOKENS.model_copy(update={"reported_cost": Decimal(reported)})
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", tokens) == RequestCost(
        cost=Decimal(reported)
    )


@pytest.mark.parametrize(
    ("reported", "stored"),
    [("1e-200", "0"), ("0.1" + "0" * 40 + "1", "0.1"), ("999999." + "3" * 60, "999999." + "3" * 24)],
)
def test_a_cost_with_too_many_decimals_is_rounded(resources: Resources, reported: str, stored: str) -> None:
    charge = get_request_cost(
        resources, "openrouter", "m", TOKENS.model_copy(update={"reported_cost": Decimal(reported)})
    )
    resources.tables.write_items(Put("usage", {"pk": "a", "sk": "b", "cost": charge.cost}))
    item = resources.tables.get_item("usage", "a", "b")
    assert item is not None
    assert item["cost"] == charge.cost == Decimal(stored)


@pytest.mark.parametrize(
    ("is_byok", "cost", "bill", "usd"),
    [(True, 0, 0.0360795, "0.0360795"), (False, 0.00000285, 0.00000285, "0.00000285"), (True, 0.002, 0.04, "0.042")],
)
def test_the_makers_bill_is_added_only_with_the_customers_own_key(
    resources: Resources, is_byok: bool, cost: float, bill: float, usd: str
) -> None:
    reported = get_reported_cost({"is_byok": is_byok, "cost": cost, "cost_details": {"upstream_inference_cost": bill}})
    tokens = TOKENS.model_copy(update={"reported_cost": reported})
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", tokens).cost == Decimal(usd)


def test_openrouter_is_priced_by_the_catalogue_when_it_reports_no_cost(resources: Resources) -> None:
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")


def test_a_customers_own_server_is_priced_by_the_name_of_its_model(resources: Resources) -> None:
    assert get_request_cost(resources, "openai-compatible", "claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")
    assert not get_request_cost(resources, "openai-compatible", "my-own", TOKENS).is_known
