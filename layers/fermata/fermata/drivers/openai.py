"""OpenAI: the Responses API, stateless."""

import re
from collections.abc import Iterable
from typing import Any

from fermata.drivers.responses.fold import Draft
from fermata.drivers.responses.request import WITHOUT_REASONING, body_of, effort
from fermata.drivers.speaker import LIMIT_REFUSED, Adjusted, Speaker, adjustment
from fermata.words.model import Ask

PROVIDER = "openai"
ROOM_TO_THINK = 25_000
"""Tokens beyond the answer's own, because thinking counts against the same limit."""

_THINKS = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*chat)")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def thinks(model: str) -> bool:
    """Whether the model reasons, by its name."""
    return _THINKS.match(model) is not None


def cache_key(scope: str, tools: Iterable[str]) -> str:
    """Requests that begin alike meet the same cache: those of one scope with the same tools."""
    return f"instatic:{scope}:{_base36(_fnv1a(','.join(sorted(tools))))}"


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    body = body_of(ask, PROVIDER, adjusted, named=False)
    if ask.scope:
        body["prompt_cache_key"] = cache_key(ask.scope, (spec.name for spec in ask.tools))
    if thinks(ask.model):
        body["include"] = ["reasoning.encrypted_content"]
        body["max_output_tokens"] += ask.thinking_tokens or ROOM_TO_THINK
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
