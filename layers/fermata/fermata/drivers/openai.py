"""OpenAI: the Responses API, stateless."""

from collections.abc import Iterable
from typing import Any

from fermata.drivers.responses.fold import Draft
from fermata.drivers.responses.request import WITHOUT_REASONING, body_of
from fermata.drivers.speaker import LIMIT_REFUSED, Adjusted, Speaker, adjustment
from fermata.drivers.thinking import effort, openai_thinks
from fermata.words.model import Ask

PROVIDER = "openai"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def cache_key(scope: str, tools: Iterable[str]) -> str:
    """Requests that begin alike meet the same cache: those of one scope with the same tools."""
    return f"instatic:{scope}:{_base36(_fnv1a(','.join(sorted(tools))))}"


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    body = body_of(ask, PROVIDER, adjusted, named=False)
    if ask.scope:
        body["prompt_cache_key"] = cache_key(ask.scope, (spec.name for spec in ask.tools))
    if openai_thinks(ask.model):
        body["include"] = ["reasoning.encrypted_content"]
        if ask.thinking_tokens > 0:
            body["reasoning"] = {"effort": effort(ask.thinking_tokens), "summary": "auto"}
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


OPENAI = Speaker(
    provider=PROVIDER,
    label="OpenAI",
    path="/v1/responses",
    body_of=_body,
    draft_of=lambda ask, sent: Draft(PROVIDER, ask.model, sent),
    adjustments=(
        adjustment("include", r"encrypted content is not supported|['\"]include"),
        adjustment(WITHOUT_REASONING, r"encrypted.content|reasoning.*required following", lasting=False),
        adjustment("max_output_tokens", LIMIT_REFUSED),
        adjustment("reasoning", r"reasoning[._ ](?:summar|effort)"),
    ),
)
