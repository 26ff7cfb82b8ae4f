"""docs/scale.md is what the counts of the bench say, and its arithmetic holds."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from bench.aws_quotas import QUOTAS
from bench.scale_page import PRICES, SCALE_PAGE_PATH, render_scale_page
from bench.scaling_limits import (
    LEVELS,
    TurnRates,
    compute_reader_prices,
    find_new_account_limit,
    list_exceeded,
    read_turn_rates,
)
from bench.turn_cost import FunctionMemory, TurnShape

RATES = TurnRates(
    seconds=50,
    cost_per_1000=Decimal(1),
    concurrency=2,
    starts=1,
    transitions=10,
    answers=4,
    heartbeats=1,
    read_units=100,
    write_units=200,
    api_requests=5,
    uploads=1,
)
BY_KEY = {quota.key: quota for quota in QUOTAS}


def test_the_page_is_up_to_date() -> None:
    assert SCALE_PAGE_PATH.read_text() == render_scale_page(), "Write it again: make docs"


@pytest.mark.parametrize(
    ("key", "turns"),
    [("concurrency", 500), ("starts", 300 * 50), ("answers", 500 * 50 // 4), ("write_units", 40_000 * 50 // 200)],
)
def test_a_quota_allows_as_many_turns_as_it_can_serve(key: str, turns: int) -> None:
    quota = BY_KEY[key]
    assert RATES.compute_limit(quota, quota.value) == turns
    assert RATES.compute_demand(quota, turns) <= quota.value < RATES.compute_demand(quota, turns + 1)


def test_a_rate_is_that_of_turns_that_start_while_others_end() -> None:
    assert RATES.compute_demand(BY_KEY["transitions"], 500) == 500 / 50 * 10
    assert RATES.compute_demand(BY_KEY["executions"], 500) == 500


@pytest.mark.parametrize("level", LEVELS)
def test_quotas_break_in_the_order_in_which_they_are_exceeded(level: int) -> None:
    exceeded = list_exceeded(RATES, level)
    factors = [factor for _, factor in exceeded]
    assert factors == sorted(factors, reverse=True)
    assert {quota.key for quota, _ in exceeded} == {
        quota.key for quota in QUOTAS if RATES.compute_limit(quota, quota.value) < level
    }


def test_an_account_is_first_limited_by_its_functions() -> None:
    rates = read_turn_rates()
    (first, _), *_ = list_exceeded(rates, LEVELS[-1])
    assert first.key == "concurrency"
    assert find_new_account_limit(rates) == int(10 / rates.concurrency)


def test_the_amounts_are_those_of_the_bench(tmp_path: Path) -> None:
    requests = {"states:StartExecution": 1, "states:SendTaskSuccess": 3, "states:SendTaskHeartbeat": 2, "s3:PUT": 7}
    units = {"result": "12.5 WRU, 90 RRU", "numbers": {"transitions": 9, "rest": {"requests": requests}}}
    rows = [{"key": "units", **units}, {"key": "cost", "numbers": {"S3": 0.25, "logs": 0.5}}]
    results = tmp_path / "latest.json"
    results.write_text(json.dumps({"rows": rows}))
    rates = read_turn_rates(results)
    assert (rates.write_units, rates.read_units, rates.transitions) == (12.5, 90, 9)
    assert (rates.answers, rates.heartbeats, rates.uploads) == (3, 2, 7)
    assert rates.cost_per_1000 == Decimal("0.75")
    assert rates.seconds == TurnShape().wall_seconds


def test_a_round_runs_only_while_the_model_answers() -> None:
    assert 1 + TurnShape().round_seconds / TurnShape().wall_seconds < read_turn_rates().concurrency < 2


def test_the_cost_of_an_hour_is_that_of_the_turns_that_end_in_it() -> None:
    assert RATES.compute_cost_per_hour(100) == Decimal(100 * 3600) / 50 / 1000


def test_shared_instances_are_paid_for_from_the_number_of_streams_that_costs_as_much() -> None:
    prices = compute_reader_prices(FunctionMemory(round=1, stream=1024, tool_result=1, rollup=1))
    assert prices.function * (prices.break_even - 1) < prices.instances <= prices.function * prices.break_even


def test_every_quota_and_price_has_a_source_at_aws() -> None:
    sources = [quota.source for quota in QUOTAS] + [source for _, _, source in PRICES]
    assert all(source.startswith(("https://docs.aws.amazon.com/", "https://aws.amazon.com/")) for source in sources)
    assert all(quota.smaller_value <= quota.value for quota in QUOTAS)
