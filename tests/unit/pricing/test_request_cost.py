"""Who says what a request costs."""

import logging
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.dynamodb import Put
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


def test_a_known_model_is_priced_by_the_catalogue_and_the_price_is_told(resources: Resources) -> None:
    charge = get_request_cost(resources, "anthropic", "claude-sonnet-4-5-20250929", TOKENS)
    assert (charge.cost, charge.known) == (Decimal("0.0045"), True)
    assert charge.price is not None
    assert charge.price.output_per_mtok == 15


@pytest.mark.parametrize("case", read_cases("resolveCostUsd"), ids=case_name)
def test_what_nobody_prices_costs_nothing_as_in_the_original(resources: Resources, case: Any) -> None:
    charge = get_request_cost(resources, case["input"]["provider"], case["input"]["model"], TOKENS)
    assert charge.cost == case["expected"]


def test_ollama_is_free_and_nobody_looks_into_the_catalogue_for_it(resources: Resources) -> None:
    process = resources_of_new_process(resources)
    assert get_request_cost(process, "ollama", "claude-sonnet-4.5", TOKENS) == RequestCost(cost=Decimal(0))
    assert "tables" not in process.__dict__


def test_an_unknown_model_is_told_apart_from_a_free_one_and_warned_of_once(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert get_request_cost(resources, "anthropic", "claude-99", TOKENS) == RequestCost(
                cost=Decimal(0), known=False
            )
        assert [record.message for record in caplog.records] == ["pricing.unknown_model"]
        clock.advance(6 * 3600 + 1)
        get_request_cost(resources, "anthropic", "claude-99", TOKENS)
    assert len(caplog.records) == 2


def test_every_model_of_openrouter_has_its_price_there_and_with_nobody_else(resources: Resources) -> None:
    known = (catalogue_entry("anthropic/claude-sonnet-4.5"), catalogue_entry("google/gemini-3", "0.000002", "0.00001"))
    catalogue.store_catalogue(resources, catalogue.parse_catalogue(catalogue_body(*known), 8))
    charge = get_request_cost(resources, "openrouter", "google/gemini-3", TOKENS)
    assert (charge.cost, charge.known) == (Decimal("0.003"), True)
    for provider in ("openai-compatible", "openai", "anthropic"):
        assert get_request_cost(resources, provider, "google/gemini-3", TOKENS).known is False


@pytest.mark.parametrize("told", ["0.01234567", "0"])
def test_what_the_provider_says_a_request_cost_wins(resources: Resources, told: str) -> None:
    tokens = TOKENS.model_copy(update={"reported_cost": Decimal(told)})
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", tokens) == RequestCost(
        cost=Decimal(told)
    )


@pytest.mark.parametrize(
    ("told", "kept"),
    [("1e-200", "0"), ("0.1" + "0" * 40 + "1", "0.1"), ("999999." + "3" * 60, "999999." + "3" * 24)],
)
def test_what_is_said_finer_than_a_table_can_hold_is_rounded(resources: Resources, told: str, kept: str) -> None:
    charge = get_request_cost(resources, "openrouter", "m", TOKENS.model_copy(update={"reported_cost": Decimal(told)}))
    resources.tables.write_items(Put("usage", {"pk": "a", "sk": "b", "cost": charge.cost}))
    found = resources.tables.get_item("usage", "a", "b")
    assert found is not None
    assert found["cost"] == charge.cost == Decimal(kept)


@pytest.mark.parametrize(
    ("is_byok", "cost", "bill", "usd"),
    [(True, 0, 0.0360795, "0.0360795"), (False, 0.00000285, 0.00000285, "0.00000285"), (True, 0.002, 0.04, "0.042")],
)
def test_with_a_key_of_ones_own_at_the_maker_its_bill_is_added_and_otherwise_it_is_counted_once(
    resources: Resources, is_byok: bool, cost: float, bill: float, usd: str
) -> None:
    told = get_reported_cost({"is_byok": is_byok, "cost": cost, "cost_details": {"upstream_inference_cost": bill}})
    tokens = TOKENS.model_copy(update={"reported_cost": told})
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", tokens).cost == Decimal(usd)


def test_openrouter_is_priced_by_the_catalogue_when_it_does_not_say(resources: Resources) -> None:
    assert get_request_cost(resources, "openrouter", "anthropic/claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")


def test_a_server_of_ones_own_is_priced_where_its_model_has_the_name_of_a_priced_one(resources: Resources) -> None:
    assert get_request_cost(resources, "openai-compatible", "claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")
    assert not get_request_cost(resources, "openai-compatible", "my-own", TOKENS).known
