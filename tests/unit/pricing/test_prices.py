"""Exact decimals: what the original computed, and cases that others are known to get wrong."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.model_io import TokenUsage
from fermata.domain.money import round_usd
from fermata.drivers.protocols.token_usage import tokens_from_usage
from fermata.pricing.prices import Price, compute_cost, compute_max_cost
from tests.unit.pricing.recorded_cases import case_name, read_cases


def price(fresh: str, out: str, read: str | None = None, write: str | None = None) -> Price:
    return Price.model_validate(
        {
            "input_per_mtok": fresh,
            "output_per_mtok": out,
            "cache_read_per_mtok": read,
            "cache_write_per_mtok": write,
        }
    )


def buckets(provider: str, usage: dict[str, int]) -> TokenUsage:
    """A provider's own counts as its driver hands them on: all but Anthropic count what was cached as prompt too."""
    prompt, completion, read = usage["promptTokens"], usage["completionTokens"], usage["cacheReadTokens"]
    if provider == "anthropic":
        written = usage["cacheCreationTokens"]
        return TokenUsage(prompt=prompt, completion=completion, cache_read=read, cache_creation=written)
    return tokens_from_usage(usage, prompt, completion, {"cached_tokens": read})


@pytest.mark.parametrize("case", read_cases("computeCostUsd"), ids=case_name)
def test_a_request_costs_what_it_costs_in_the_original(case: Any) -> None:
    given = {name: None if rate is None else str(rate) for name, rate in case["input"]["prices"].items()}
    rates = price(given["inputPerMTok"], given["outputPerMTok"], given["cacheReadPerMTok"], given["cacheWritePerMTok"])
    tokens = buckets(case["input"]["provider"], case["input"]["usage"])
    assert compute_cost(rates, tokens) == Decimal(str(case["expected"]))
    assert round_usd(compute_cost(rates, tokens)) == case["expected"]


def test_what_was_read_from_the_cache_is_not_paid_as_fresh_prompt() -> None:
    tokens = TokenUsage(prompt=4, cache_read=2_455, completion=23)
    assert compute_cost(price("0.80", "4", read="0.08"), tokens) == Decimal("0.0002916")


def test_what_was_written_to_the_cache_is_paid_once() -> None:
    tokens = TokenUsage(prompt=3, cache_creation=12_304, completion=550)
    assert compute_cost(price("3", "15", write="3.75"), tokens) == Decimal("0.054399")


def test_every_token_written_to_the_cache_is_paid_whatever_its_breakdown_says() -> None:
    tokens = TokenUsage(cache_creation=184_457, raw={"cache_creation": {"ephemeral_5m_input_tokens": 31_490}})
    assert compute_cost(price("3", "15", write="3.75"), tokens) == Decimal("0.69171375")


def test_what_a_cache_read_beyond_the_prompt_makes_nothing_cheaper_than_free() -> None:
    tokens = TokenUsage(prompt=100, cache_read=900, completion=2, cached_within=True)
    assert compute_cost(price("3", "15", read="0"), tokens) == Decimal("0.00003")
    assert tokens.context_tokens == 100


def test_the_three_buckets_add_up_to_the_context_without_counting_any_twice() -> None:
    assert TokenUsage(prompt=5, cache_read=128_955, cache_creation=1_253).context_tokens == 130_213


@pytest.mark.parametrize(
    ("tokens", "usd"), [(TokenUsage(cache_read=10), "0.00003"), (TokenUsage(cache_creation=10), "0.00003")]
)
def test_without_a_rate_of_its_own_what_is_cached_costs_what_a_prompt_does(tokens: TokenUsage, usd: str) -> None:
    assert compute_cost(price("3", "15"), tokens) == Decimal(usd)


def test_a_rate_of_zero_is_a_rate() -> None:
    assert compute_cost(price("3", "15", read="0", write="0"), TokenUsage(cache_read=10, cache_creation=10)) == 0


def test_a_thousand_rounds_add_up_to_the_last_digit() -> None:
    rates = price("0.0333333", "0.1", read="0.0123456789")
    one = compute_cost(rates, TokenUsage(prompt=1, cache_read=7, completion=3))
    assert sum([one] * 1000) == one * 1000 == Decimal("0.0004197530523")


@pytest.mark.parametrize(
    ("usd", "shown"),
    [("0.0000005", 0.000001), ("0.0000004999", 0.0), ("0.0082845", 0.008285), ("0.00828449999", 0.008284), ("7", 7.0)],
)
def test_a_cost_is_rounded_where_it_leaves_and_half_goes_up(usd: str, shown: float) -> None:
    assert round_usd(Decimal(usd)) == shown


@pytest.mark.parametrize(("read", "write"), [(None, None), ("0.3", "3.75"), ("5", "4"), ("0", None)])
def test_nothing_that_comes_of_a_prompt_costs_more_than_what_is_held_for_it(
    read: str | None, write: str | None
) -> None:
    rates = price("3", "15", read, write)
    held = compute_max_cost(rates, 1_000, 100)
    outcomes = [
        TokenUsage(prompt=1_000, completion=100),
        buckets(
            "anthropic",
            {"promptTokens": 0, "completionTokens": 100, "cacheReadTokens": 0, "cacheCreationTokens": 1_000},
        ),
        buckets(
            "anthropic",
            {"promptTokens": 0, "completionTokens": 100, "cacheReadTokens": 1_000, "cacheCreationTokens": 0},
        ),
    ]
    assert held == max(compute_cost(rates, tokens) for tokens in outcomes)
