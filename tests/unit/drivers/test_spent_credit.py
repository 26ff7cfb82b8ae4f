"""Spent credit is told as what it is, in the forms in which servers report it (decision 0266)."""

import json
from typing import Any

import pytest

from fermata.domain.errors import ProviderError
from fermata.drivers.error_mapping import error_from_response, error_from_stream
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.server import ScriptedResponse
from tests.unit.drivers.conversation_builders import user_message
from tests.unit.drivers.strict_providers import CASES_BY_PROVIDER, StartServer, build_request, collect_parts
from tests.unit.drivers.test_remember_history_repairs import ANTHROPIC

ADVICE = "The account of this API key has no credit left. Check your account balance."
SPENT: dict[str, tuple[int, Any]] = {
    "Anthropic, with the status of a bad request": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            },
        },
    ),
    "Anthropic, at a limit that the account has set": (
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
            }
        },
    ),
    "Anthropic, with a status of its own": (402, {"error": {"type": "billing_error", "message": "No."}}),
    "OpenAI": (429, {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}),
    "OpenAI, an account that never paid": (
        429,
        {"error": {"message": "Your account is not active, please check your billing details on our website."}},
    ),
    "DeepSeek": (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}),
    "DeepSeek, behind a gateway": (400, {"error": {"message": "Insufficient Balance"}}),
    "OpenRouter": (
        402,
        {
            "error": {
                "code": 402,
                "message": "This request requires more credits, or fewer max_tokens. You can only afford 3919.",
            }
        },
    ),
    "xAI, with the status of a missing permission": (
        403,
        {
            "code": "The caller does not have permission",
            "error": "Your team t has either used all available credits or reached its monthly spending limit.",
        },
    ),
    "xAI, with the status of a rate limit": (
        429,
        {"error": "Your team t has either used all available credits or reached its monthly spending limit."},
    ),
    "Google": (
        429,
        [
            {
                "error": {
                    "code": 429,
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "Your billing account has exceeded its monthly spending cap.",
                }
            }
        ],
    ),
    "Moonshot": (
        429,
        {"error": {"type": "exceeded_current_quota_error", "message": "Your account is suspended."}},
    ),
    "Alibaba": (400, {"error": {"code": "Arrearage", "message": "Make sure your account is in good standing."}}),
    "Zhipu": (429, {"error": {"code": "1113", "message": "\u4f59\u989d\u4e0d\u8db3\u3002"}}),
    "Venice": (402, {"error": "Insufficient USD or Diem balance to complete request"}),
    "OpenCode, with the status of a wrong key": (
        401,
        {"type": "error", "error": {"type": "CreditsError", "message": "Insufficient balance."}},
    ),
    "LiteLLM": (400, {"error": {"message": "Budget has been exceeded! Current cost: 1.2", "type": "budget_exceeded"}}),
    "a reseller": (403, {"error": {"message": "quota: $0.00", "code": "insufficient_user_quota"}}),
    "a gateway that reports all errors with 500": (
        500,
        {"error": {"message": "AnthropicException: Your credit balance is too low to access the Anthropic API."}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body"), SPENT.values(), ids=SPENT)
def test_spent_credit_is_told_as_such_and_is_not_retried(status: int, body: Any) -> None:
    error = error_from_response("Peer", status, {}, json.dumps(body).encode(), "key-1")
    assert (error.code, error.retryable) == ("provider_quota", False)
    assert error.message.endswith("Check your account balance.")
    assert "authentication failed" not in error.message
    if status not in (402, 429):  # the words for these two are those of the editors' contract
        assert error.message.startswith(f"Peer error ({status}): ")
        assert error.message.endswith(ADVICE)


@pytest.mark.parametrize(("status", "body"), SPENT.values(), ids=SPENT)
def test_spent_credit_in_a_stream_is_told_as_such_and_is_not_retried(status: int, body: Any) -> None:
    payload = body[0]["error"] if isinstance(body, list) else body["error"]
    error = error_from_stream("Peer", payload, "key-1")
    assert (error.code, error.retryable) == ("provider_quota", False)
    assert error.message.startswith("Peer stream error: ")
    assert error.message.endswith(ADVICE)


PASSING: dict[str, tuple[int, str]] = {
    "a limit of a minute": (429, "Rate limit reached: 30000 tokens per minute. Purchase more credits to raise it."),
    "a quota of a minute": (429, "You exceeded your current quota, please check your plan and billing details."),
    "a limit that resets": (429, "Usage limit reached. Your monthly usage limit resets in 3 minutes."),
    "a window": (429, "Too many requests"),
}


@pytest.mark.parametrize(("status", "words"), PASSING.values(), ids=PASSING)
def test_a_limit_that_passes_is_still_retried(status: int, words: str) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    error = error_from_response("Peer", status, {}, body, "")
    assert (error.code, error.retryable) == ("provider_quota", True)


OTHER = (
    "messages.3: content must not be empty",
    "Invalid schema for function 'add_credit_card': no credit card number",
    "max_tokens: 65536 > 8192",
    "The model `credits` does not exist",
)


@pytest.mark.parametrize("words", OTHER)
def test_other_refusals_are_not_mistaken_for_spent_credit(words: str) -> None:
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    assert error_from_response("Peer", 400, {}, body, "").code == "provider_request"


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compatible", "openrouter", "gemini", "ollama"])
def test_no_provider_is_asked_again_without_credit(
    provider: str, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    words = "Insufficient credits for max_tokens: 8192 and these messages. Purchase more credits."
    body = json.dumps({"error": {"message": words}}).encode()
    server.script_response(ScriptedResponse([body], status=400))
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_quota", False)
    assert len(server.bodies) == 1
