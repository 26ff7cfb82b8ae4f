"""Who says what a request costs."""

import logging
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.drivers.openrouter import reported_cost
from fermata.pricing import catalogue
from fermata.pricing.charging import Charge, price_usage
from fermata.words.model import Tokens
from tests.desk import TestClock, another_process
from tests.unit.pricing.recorded import cases, listing, model, name

TOKENS = Tokens(prompt=1_000, completion=100)


@pytest.fixture(autouse=True)
def priced(desk: Desk) -> None:
    catalogue.keep(desk, catalogue.parse(listing(model("anthropic/claude-sonnet-4.5")), 7))


def test_a_known_model_is_priced_by_the_catalogue_and_the_price_is_told(desk: Desk) -> None:
    charge = price_usage(desk, "anthropic", "claude-sonnet-4-5-20250929", TOKENS)
    assert (charge.cost, charge.known) == (Decimal("0.0045"), True)
    assert charge.price is not None
    assert charge.price.output_per_mtok == 15


@pytest.mark.parametrize("case", cases("resolveCostUsd"), ids=name)
def test_what_nobody_prices_costs_nothing_as_in_the_original(desk: Desk, case: Any) -> None:
    charge = price_usage(desk, case["input"]["provider"], case["input"]["model"], TOKENS)
    assert charge.cost == case["expected"]


def test_ollama_is_free_and_nobody_looks_into_the_catalogue_for_it(desk: Desk) -> None:
    process = another_process(desk)
    assert price_usage(process, "ollama", "claude-sonnet-4.5", TOKENS) == Charge(cost=Decimal(0))
    assert "tables" not in process.__dict__


def test_an_unknown_model_is_told_apart_from_a_free_one_and_warned_of_once(
    desk: Desk, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert price_usage(desk, "anthropic", "claude-99", TOKENS) == Charge(cost=Decimal(0), known=False)
        assert [record.message for record in caplog.records] == ["pricing.unknown_model"]
        clock.go_on(6 * 3600 + 1)
        price_usage(desk, "anthropic", "claude-99", TOKENS)
    assert len(caplog.records) == 2


def test_every_model_of_openrouter_has_its_price_there_and_with_nobody_else(desk: Desk) -> None:
    known = (model("anthropic/claude-sonnet-4.5"), model("google/gemini-3", "0.000002", "0.00001"))
    catalogue.keep(desk, catalogue.parse(listing(*known), 8))
    charge = price_usage(desk, "openrouter", "google/gemini-3", TOKENS)
    assert (charge.cost, charge.known) == (Decimal("0.003"), True)
    for provider in ("openai-compatible", "openai", "anthropic"):
        assert price_usage(desk, provider, "google/gemini-3", TOKENS).known is False


@pytest.mark.parametrize("told", ["0.01234567", "0"])
def test_what_the_provider_says_a_request_cost_wins(desk: Desk, told: str) -> None:
    tokens = TOKENS.model_copy(update={"reported_cost": Decimal(told)})
    assert price_usage(desk, "openrouter", "anthropic/claude-sonnet-4.5", tokens) == Charge(cost=Decimal(told))


@pytest.mark.parametrize(
    ("told", "kept"),
    [("1e-200", "0"), ("0.1" + "0" * 40 + "1", "0.1"), ("999999." + "3" * 60, "999999." + "3" * 24)],
)
def test_what_is_said_finer_than_a_table_can_hold_is_rounded(desk: Desk, told: str, kept: str) -> None:
    charge = price_usage(desk, "openrouter", "m", TOKENS.model_copy(update={"reported_cost": Decimal(told)}))
    desk.tables.write(Put("usage", {"pk": "a", "sk": "b", "cost": charge.cost}))
    found = desk.tables.get("usage", "a", "b")
    assert found is not None
    assert found["cost"] == charge.cost == Decimal(kept)


@pytest.mark.parametrize(
    ("is_byok", "cost", "bill", "usd"),
    [(True, 0, 0.0360795, "0.0360795"), (False, 0.00000285, 0.00000285, "0.00000285"), (True, 0.002, 0.04, "0.042")],
)
def test_with_a_key_of_ones_own_at_the_maker_its_bill_is_added_and_otherwise_it_is_counted_once(
    desk: Desk, is_byok: bool, cost: float, bill: float, usd: str
) -> None:
    told = reported_cost({"is_byok": is_byok, "cost": cost, "cost_details": {"upstream_inference_cost": bill}})
    tokens = TOKENS.model_copy(update={"reported_cost": told})
    assert price_usage(desk, "openrouter", "anthropic/claude-sonnet-4.5", tokens).cost == Decimal(usd)


def test_openrouter_is_priced_by_the_catalogue_when_it_does_not_say(desk: Desk) -> None:
    assert price_usage(desk, "openrouter", "anthropic/claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")


def test_a_server_of_ones_own_is_priced_where_its_model_has_the_name_of_a_priced_one(desk: Desk) -> None:
    assert price_usage(desk, "openai-compatible", "claude-sonnet-4.5", TOKENS).cost == Decimal("0.0045")
    assert not price_usage(desk, "openai-compatible", "my-own", TOKENS).known
