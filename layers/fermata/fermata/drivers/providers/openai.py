"""OpenAI: the Responses API, stateless."""

from collections.abc import Iterable
from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.openai_responses.request import OMIT_REASONING_ITEMS, build_request_body
from fermata.drivers.provider import OUTPUT_LIMIT_REFUSAL, AppliedAdjustments, Provider, make_adjustment
from fermata.drivers.thinking_budget import effort_from_tokens, is_openai_reasoning_model

_NAME = "openai"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def make_prompt_cache_key(scope: str, tools: Iterable[str]) -> str:
    """Requests that begin alike meet the same cache: those of one scope with the same tools."""
    return f"instatic:{scope}:{_base36(_fnv1a(','.join(sorted(tools))))}"


def _body(ask: ModelRequest, adjusted: AppliedAdjustments) -> dict[str, Any]:
    body = build_request_body(ask, _NAME, adjusted, named=False)
    if ask.scope:
        body["prompt_cache_key"] = make_prompt_cache_key(ask.scope, (spec.name for spec in ask.tools))
    if is_openai_reasoning_model(ask.model):
        body["include"] = ["reasoning.encrypted_content"]
        if ask.thinking_tokens > 0:
            body["reasoning"] = {"effort": effort_from_tokens(ask.thinking_tokens), "summary": "auto"}
    return body


def _fnv1a(text: str) -> int:
    """FNV-1a over UTF-16 units, 32 bits."""
    units = text.encode("utf-16-le")
    value = 0x811C9DC5
    for at in range(0, len(units), 2):
        value = ((value ^ int.from_bytes(units[at : at + 2], "little")) * 0x01000193) & 0xFFFFFFFF
    return value


def _base36(number: int) -> str:
    digits = _DIGITS[number % 36]
    while number := number // 36:
        digits = _DIGITS[number % 36] + digits
    return digits


OPENAI = Provider(
    name=_NAME,
    label="OpenAI",
    path="/v1/responses",
    build_body=_body,
    make_accumulator=lambda ask, sent: ResponsesAccumulator(_NAME, ask.model, sent),
    adjustments=(
        make_adjustment("include", r"encrypted content is not supported|['\"]include"),
        make_adjustment(OMIT_REASONING_ITEMS, r"encrypted.content|reasoning.*required following", is_lasting=False),
        make_adjustment("max_output_tokens", OUTPUT_LIMIT_REFUSAL),
        make_adjustment("reasoning", r"reasoning[._ ](?:summar|effort)"),
    ),
)
