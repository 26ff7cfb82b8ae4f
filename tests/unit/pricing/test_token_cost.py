"""Exact costs: recorded cases of the original, and known pitfalls."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.model_io import TokenUsage
from fermata.domain.usd_rounding import round_usd
from fermata.drivers.protocols.token_usage import tokens_from_usage
from fermata.pricing.token_cost import Price, compute_cost, compute_max_cost
from tests.unit.pricing.recorded_cases import case_name, read_cases


def make_price(input_rate: str, output_rate: str, read: str | None = None, write: str | None = None) -> Price:
    return Price.model_validate(
        {
            "input_per_mtok": input_rate,
            "output_per_mtok": output_rate,
            "cache_read_per_mtok": read,
            "cache_write_per_mtok": write,
        }
    )


def tokens_as_counted(provider: str, usage: dict[str, int]) -> TokenUsage:
    """Build the usage that a driver reports: all providers but Anthropic count cached tokens as prompt too."""
    prompt, completion, read = usage["promptTokens"], usage["completionTokens"], usage["cacheReadTokens"]
    if provider == "anthropic":
        written = usage["cacheCreationTokens"]
        return TokenUsage(prompt=prompt, completion=completion, cache_read=read, cache_creation=written)
    return tokens_from_usage(usage, prompt, completion, {"cached_tokens": read})


@pytest.mark.parametrize("case", read_cases("computeCostUsd"), ids=case_name)
def test_a_request_costs_what_it_costs_in_the_original(case: Any) -> None:
    rates = case["input"]["prices"]
    read, write = (
        None if rates[name] is None else str(rates[name]) for name in ("cacheReadPerMTok", "cacheWritePerMTok")
    )
    price = make_price(str(rates["inputPerMTok"]), str(rates["outputPerMTok"]), read, write)
    cost = compute_cost(price, tokens_as_counted(case["input"]["provider"], case["input"]["usage"]))
    assert cost == Decimal(str(case["expected"]))
    assert round_usd(cost) == case["expected"]


def test_cache_reads_are_not_paid_as_prompt() -> None:
    tokens = TokenUsage(prompt=4, cache_read=2_455, completion=23)
    assert compute_cost(make_price("0.80", "4", read="0.08"), tokens) == Decimal("0.0002916")


def test_cache_writes_are_paid_once() -> None:
    tokens = TokenUsage(prompt=3, cache_creation=12_304, completion=550)
    assert compute_cost(make_price("3", "15", write="3.75"), tokens) == Decimal("0.054399")


def test_every_cache_write_is_paid_with_any_breakdown() -> None:
    tokens = TokenUsage(cache_creation=184_457, raw={"cache_creation": {"ephemeral_5m_input_tokens": 31_490}})
    assert compute_cost(make_price("3", "15", write="3.75"), tokens) == Decimal("0.69171375")


def test_more_cache_reads_than_prompt_never_cost_less_than_zero() -> None:
    tokens = TokenUsage(prompt=100, cache_read=900, completion=2, cached_within=True)
    assert compute_cost(make_price("3", "15", read="0"), tokens) == Decimal("0.00003")
    assert tokens.context_tokens == 100


def test_prompt_reads_and_writes_add_up_to_the_context() -> None:
    assert TokenUsage(prompt=5, cache_read=128_955, cache_creation=1_253).context_tokens == 130_213


@pytest.mark.parametrize(
    ("tokens", "usd"), [(TokenUsage(cache_read=10), "0.00003"), (TokenUsage(cache_creation=10), "0.00003")]
)
def test_without_a_cache_rate_cached_tokens_cost_the_input_rate(tokens: TokenUsage, usd: str) -> None:
    assert compute_cost(make_price("3", "15"), tokens) == Decimal(usd)


def test_a_rate_of_zero_is_a_rate() -> None:
    assert compute_cost(make_price("3", "15", read="0", write="0"), TokenUsage(cache_read=10, cache_creation=10)) == 0


def test_a_thousand_rounds_add_up_to_the_last_digit() -> None:
    rates = make_price("0.0333333", "0.1", read="0.0123456789")
    one = compute_cost(rates, TokenUsage(prompt=1, cache_read=7, completion=3))
    assert sum([one] * 1000) == one * 1000 == Decimal("0.0004197530523")


@pytest.mark.parametrize(
    ("usd", "rounded"),
    [("0.0000005", 0.000001), ("0.0000004999", 0.0), ("0.0082845", 0.008285), ("0.00828449999", 0.008284), ("7", 7.0)],
)
def test_a_cost_is_rounded_half_up_on_the_wire(usd: str, rounded: float) -> None:
    assert round_usd(Decimal(usd)) == rounded


@pytest.mark.parametrize(("read", "write"), [(None, None), ("0.3", "3.75"), ("5", "4"), ("0", None)])
def test_no_request_costs_more_than_its_maximum(read: str | None, write: str | None) -> None:
    rates = make_price("3", "15", read, write)
    max_cost = compute_max_cost(rates, 1_000, 100)
    outcomes = [
        TokenUsage(prompt=1_000, completion=100),
        tokens_as_counted(
            "anthropic",
            {"promptTokens": 0, "completionTokens": 100, "cacheReadTokens": 0, "cacheCreationTokens": 1_000},
        ),
        tokens_as_counted(
            "anthropic",
            {"promptTokens": 0, "completionTokens": 100, "cacheReadTokens": 1_000, "cacheCreationTokens": 0},
        ),
    ]
    assert max_cost == max(compute_cost(rates, tokens) for tokens in outcomes)
