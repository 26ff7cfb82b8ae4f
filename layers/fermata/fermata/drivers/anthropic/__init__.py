"""Anthropic's Messages API: an `Ask` becomes one request, its stream becomes pieces."""

from typing import Any

from fermata.drivers.anthropic.fold import Draft
from fermata.drivers.anthropic.request import (
    BINDING_BETA,
    WITHOUT_THINKING,
    WITHOUT_THOUGHTS,
    body_of,
    without_thoughts,
)
from fermata.drivers.speaker import Adjusted, Speaker, adjustment
from fermata.drivers.thinking import binds_thinking
from fermata.words.model import Ask

LABEL = "Anthropic"
VERSION = "2023-06-01"


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    said = without_thoughts(ask) if WITHOUT_THOUGHTS in adjusted else ask
    return body_of(said, thinks=WITHOUT_THINKING not in adjusted)


def _headers(ask: Ask, secret: str) -> dict[str, str]:
    key = {"x-api-key": secret} if secret else {}  # a gateway of somebody's own may have none
    binding = {"anthropic-beta": BINDING_BETA} if binds_thinking(ask.model) else {}
    return {"anthropic-version": VERSION} | key | binding


ANTHROPIC = Speaker(
    provider="anthropic",
    label=LABEL,
    path="/v1/messages",
    body_of=_body,
    draft_of=lambda ask, sent: Draft(ask.model, sent),
    headers_of=_headers,
    needs_key=False,
    adjustments=(
        adjustment(
            WITHOUT_THOUGHTS,
            r"invalid.{0,20}signature|thinking.{0,90}(?:cannot be modified|signature)|input tag .{0,300}does not match",
            lasting=False,
        ),
        adjustment(WITHOUT_THINKING, r"thinking.{0,60}(?:not supported|unsupported)|not support.{0,60}thinking"),
    ),
)
