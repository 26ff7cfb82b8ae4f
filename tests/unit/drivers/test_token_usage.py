"""Token counts and costs as providers report them."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.model_io import TokenUsage
from fermata.drivers.protocols.token_usage import estimate_request_tokens, to_token_count, truncation_warning
from fermata.drivers.providers.openrouter import get_reported_cost
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import openai
from tests.unit.drivers.conversation_builders import image_block, model_request, user_message
from tests.unit.drivers.strict_providers import CASES_BY_PROVIDER, StartServer, build_request, get_response


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
    assert get_reported_cost(usage) == Decimal(usd)


@pytest.mark.parametrize("cost", [None, True, "much", float("nan"), float("inf"), -1, 10**9, [1]])
def test_an_invalid_cost_is_ignored(cost: Any) -> None:
    assert get_reported_cost({"cost": cost}) is None


def test_only_openrouters_response_has_a_reported_cost(running: StartServer, connection: HttpConnection) -> None:
    usage = openai.make_usage(1000, 20, 400, cost=0.25, is_byok=False)
    for provider, cost in (("openrouter", Decimal("0.25")), ("openai", None)):
        peer = CASES_BY_PROVIDER[provider]
        server = running(peer)
        server.script_chunks(
            openai.encode_sse(
                openai.response_created(), openai.message_events(0, "Hi"), openai.response_ended(usage=usage)
            )
        )
        tokens = get_response(peer, build_request(peer, user_message("a")), connection, server).tokens
        assert tokens.reported_cost == cost
        assert (tokens.prompt, tokens.cache_read, tokens.context_tokens) == (1000, 400, 1000)


@pytest.mark.parametrize(
    ("value", "tokens"), [(7, 7), (7.0, 7), (None, 0), (True, 0), ("7", 0), (-1, 0), (float("nan"), 0), ([], 0)]
)
def test_values_that_are_no_number_count_nothing(value: Any, tokens: int) -> None:
    assert to_token_count(value) == tokens


def test_the_estimate_of_a_request_ignores_its_images() -> None:
    request = model_request(user_message("a", image_block()))
    assert estimate_request_tokens(request, b"x" * 5_004) == 1_000


def test_only_a_long_and_truncated_prompt_gives_a_warning() -> None:
    assert truncation_warning("Peer", 15_000, TokenUsage(prompt=51, cache_read=2_000)) is not None
    assert truncation_warning("Peer", 15_000, TokenUsage(prompt=100, cache_read=12_000)) is None
    assert truncation_warning("Peer", 1_000, TokenUsage(prompt=10)) is None
    assert truncation_warning("Peer", 15_000, TokenUsage()) is None
