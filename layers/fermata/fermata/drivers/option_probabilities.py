"""Ask a model which of some options it would name, and how probable each is: from the probabilities of its next token.

OpenAI's protocol and Gemini's tell them for twenty tokens (decision 0501). Anthropic and Ollama do not.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.domain.model_io import TokenUsage
from fermata.drivers.model_listing import ModelListClient
from fermata.drivers.provider import Provider
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection

OPTION_LABELS = "ABCDEFGHIJKLMNOPQRST"
"""Each is one token for every tokenizer. Providers tell the probabilities of twenty tokens at most."""
MIN_LABEL_SHARE = 0.5
"""How much of the probability the labels have in an answer that counts as one."""


class OptionProbabilities(NamedTuple):
    """The share of each label; empty if the model wants to say something else. And what the request has used."""

    shares: Mapping[str, float]
    tokens: TokenUsage


class _ProbabilityProtocol(NamedTuple):
    build_path: Callable[[str], str]
    build_body: Callable[[str, str, str], dict[str, Any]]
    read: Callable[[Any], tuple[list[tuple[str, float]], TokenUsage]]


def require_probabilities(provider: Provider) -> None:
    """Refuse a provider that tells no probabilities.

    Raises:
        InvalidRequest: It has none.
    """
    if provider.name not in _PROTOCOLS:
        raise InvalidRequest(
            f"{provider.label} tells no probabilities, which the backend 'evaluation' needs. Use 'structured-output', "
            "or a model of OpenAI or Gemini."
        )


def request_option_probabilities(
    provider: Provider,
    connection: ProviderConnection,
    endpoint: AuthenticatedEndpoint,
    model: str,
    system: str,
    prompt: str,
    labels: Sequence[str],
) -> OptionProbabilities:
    """Send one question.

    Args:
        provider: One that `require_probabilities` lets pass.
        connection: Sends the request, limits its time and guards the address.
        endpoint: The server and the API key.
        model: The provider's name of the model.
        system: The instructions.
        prompt: The question, which lists the options behind their labels.
        labels: Of OPTION_LABELS.

    Raises:
        ProviderError: It refused, failed, or told none.
    """
    protocol = _PROTOCOLS[provider.name]
    client = ModelListClient(provider, connection, endpoint)
    answer = client.post_json(protocol.build_path(model), protocol.build_body(model, system, prompt))
    try:
        found, tokens = protocol.read(answer)
        shares = _sum_shares(found, labels)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError):
        message = f"{provider.label} did not tell the probabilities of {model}. Use the backend 'structured-output'."
        raise ProviderError(Failure.UNUSABLE_RESPONSE.code, message, retryable=False) from None
    return OptionProbabilities(shares, tokens)


def _sum_shares(found: Sequence[tuple[str, float]], labels: Sequence[str]) -> dict[str, float]:
    """Return the share of each label among all labels: a token may have blanks and brackets around it."""
    sums = dict.fromkeys(labels, 0.0)
    for token, logarithm in found:
        label = token.strip(" \n\t\"'()*.").upper()
        if label in sums:
            sums[label] += math.exp(min(logarithm, 0.0))
    total = sum(sums.values())
    if not math.isfinite(total) or total < MIN_LABEL_SHARE:
        return {}
    return {label: round(share / total, 6) for label, share in sums.items()}


def _build_openai_body(model: str, system: str, prompt: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
    return {
        "model": model,
        "messages": messages,
        "max_completion_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": len(OPTION_LABELS),
    }


def _build_compatible_body(model: str, system: str, prompt: str) -> dict[str, Any]:
    body = _build_openai_body(model, system, prompt)
    body["max_tokens"] = body.pop("max_completion_tokens")  # which other servers do not know
    return body


def _read_openai(answer: Any) -> tuple[list[tuple[str, float]], TokenUsage]:
    first = answer["choices"][0]["logprobs"]["content"][0]
    usage = answer.get("usage") or {}
    tokens = TokenUsage(
        prompt=_read_count(usage.get("prompt_tokens")), completion=_read_count(usage.get("completion_tokens"))
    )
    return [(one["token"], float(one["logprob"])) for one in first["top_logprobs"]], tokens


def _build_gemini_body(_model: str, system: str, prompt: str) -> dict[str, Any]:
    return {
        "systemInstruction": {"parts": [{"text": system}]},
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "generationConfig": {
            "maxOutputTokens": 1,
            "temperature": 0,
            "responseLogprobs": True,
            "logprobs": len(OPTION_LABELS),
        },
    }


def _read_gemini(answer: Any) -> tuple[list[tuple[str, float]], TokenUsage]:
    first = answer["candidates"][0]["logprobsResult"]["topCandidates"][0]["candidates"]
    usage = answer.get("usageMetadata") or {}
    tokens = TokenUsage(
        prompt=_read_count(usage.get("promptTokenCount")), completion=_read_count(usage.get("candidatesTokenCount"))
    )
    return [(one["token"], float(one["logProbability"])) for one in first], tokens


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value <= 10_000_000 else 0


def _build_chat_path(_model: str) -> str:
    return "/v1/chat/completions"


_COMPATIBLE = _ProbabilityProtocol(_build_chat_path, _build_compatible_body, _read_openai)
_PROTOCOLS = {
    "openai": _ProbabilityProtocol(_build_chat_path, _build_openai_body, _read_openai),
    "openai-compatible": _COMPATIBLE,
    "openrouter": _COMPATIBLE,
    "gemini": _ProbabilityProtocol(
        lambda model: f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:generateContent",
        _build_gemini_body,
        _read_gemini,
    ),
}
