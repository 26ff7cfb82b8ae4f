"""Anthropic's Messages API: an `Ask` becomes one request, its stream becomes pieces."""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.anthropic_messages.request import (
    DISABLE_THINKING,
    OMIT_THINKING_BLOCKS,
    THINKING_BINDING_BETA,
    build_request_body,
    drop_thinking_blocks,
)
from fermata.drivers.provider import AppliedAdjustments, Provider, make_adjustment
from fermata.drivers.thinking_budget import has_bound_thinking

ANTHROPIC_LABEL = "Anthropic"
ANTHROPIC_VERSION = "2023-06-01"


def _body(ask: ModelRequest, adjusted: AppliedAdjustments) -> dict[str, Any]:
    said = drop_thinking_blocks(ask) if OMIT_THINKING_BLOCKS in adjusted else ask
    return build_request_body(said, with_thinking=DISABLE_THINKING not in adjusted)


def _headers(ask: ModelRequest, secret: str) -> dict[str, str]:
    key = {"x-api-key": secret} if secret else {}  # a gateway of somebody's own may have none
    binding = {"anthropic-beta": THINKING_BINDING_BETA} if has_bound_thinking(ask.model) else {}
    return {"anthropic-version": ANTHROPIC_VERSION} | key | binding


ANTHROPIC = Provider(
    name="anthropic",
    label=ANTHROPIC_LABEL,
    path="/v1/messages",
    build_body=_body,
    make_accumulator=lambda ask, sent: MessagesAccumulator(ask.model, sent),
    build_headers=_headers,
    requires_key=False,
    adjustments=(
        make_adjustment(
            OMIT_THINKING_BLOCKS,
            r"invalid.{0,20}signature|thinking.{0,90}(?:cannot be modified|signature)|input tag .{0,300}does not match",
            is_lasting=False,
        ),
        make_adjustment(DISABLE_THINKING, r"thinking.{0,60}(?:not supported|unsupported)|not support.{0,60}thinking"),
    ),
)
