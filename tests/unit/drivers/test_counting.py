"""Tokens and costs as providers count them, in buckets that are the same for all."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.drivers.counting import count, cut_short, expected_tokens
from fermata.drivers.line import Line
from fermata.drivers.openrouter import reported_cost
from fermata.words.model import Tokens
from tests.strict import openai
from tests.unit.drivers.asks import ask, picture, user
from tests.unit.drivers.peers import BY_NAME, Running, reply, said


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.0360795}}, "0.0360795"),
        ({"cost": 2.85e-06, "is_byok": False, "cost_details": {"upstream_inference_cost": 2.85e-06}}, "0.00000285"),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, "0.021"),
        ({"cost": 0.5, "is_byok": None, "cost_details": None}, "0.5"),
        ({"cost": "0.000123456789012345678", "is_byok": False}, "0.000123456789012345678"),
        ({"cost": 0.5, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, "0.5"),
    ],
)
def test_r15e_openrouters_own_cost_is_exact_and_counts_the_makers_bill_once(usage: dict[str, Any], usd: str) -> None:
    assert reported_cost(usage) == Decimal(usd)


@pytest.mark.parametrize("cost", [None, True, "much", float("nan"), float("inf"), -1, 10**9, [1]])
def test_a_cost_that_is_none_is_not_told(cost: Any) -> None:
    assert reported_cost({"cost": cost}) is None


def test_the_reported_cost_arrives_with_the_reply_of_openrouter_alone(running: Running, line: Line) -> None:
    told = openai.usage(1000, 20, 400, cost=0.25, is_byok=False)
    for provider, cost in (("openrouter", Decimal("0.25")), ("openai", None)):
        peer = BY_NAME[provider]
        server = running(peer)
        server.say(openai.sse(openai.created(), openai.message(0, "Hi"), openai.ended(usage=told)))
        tokens = reply(peer, said(peer, user("a")), line, server).tokens
        assert tokens.reported_cost == cost
        assert (tokens.prompt, tokens.cache_read, tokens.context) == (1000, 400, 1000)


@pytest.mark.parametrize(
    ("value", "tokens"), [(7, 7), (7.0, 7), (None, 0), (True, 0), ("7", 0), (-1, 0), (float("nan"), 0), ([], 0)]
)
def test_whatever_is_no_number_counts_nothing(value: Any, tokens: int) -> None:
    assert count(value) == tokens


def test_a_request_is_expected_to_be_as_long_as_its_text_without_its_pictures() -> None:
    asked = ask(user("a", picture()))
    assert expected_tokens(asked, b"x" * 5_004) == 1_000


def test_only_a_prompt_that_is_long_and_was_read_in_part_is_warned_of() -> None:
    assert cut_short("Peer", 15_000, Tokens(prompt=51, cache_read=2_000)) is not None
    assert cut_short("Peer", 15_000, Tokens(prompt=100, cache_read=12_000)) is None
    assert cut_short("Peer", 1_000, Tokens(prompt=10)) is None
    assert cut_short("Peer", 15_000, Tokens()) is None
