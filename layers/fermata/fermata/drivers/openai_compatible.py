"""Any server that speaks chat completions, at an address of the customer's own."""

from typing import Any

from fermata.drivers.chat.fold import Draft
from fermata.drivers.chat.request import (
    EMPTY_SIGNATURES,
    EMPTY_THOUGHTS,
    NINE_CHARACTERS,
    WITHOUT_THOUGHTS,
    body_of,
)
from fermata.drivers.counting import expected_tokens
from fermata.drivers.speaker import LIMIT_REFUSED, Adjusted, Speaker, adjustment
from fermata.drivers.thinking import effort, openai_thinks, room
from fermata.words.model import Ask

PROVIDER = "openai-compatible"
LABEL = "The model server"


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    body = body_of(ask, PROVIDER, adjusted)
    body["max_tokens"] += room(PROVIDER, ask.model, ask.thinking_tokens)
    if openai_thinks(ask.model):  # OpenAI's own models behind another address
        body["max_completion_tokens"] = body.pop("max_tokens")
        if ask.thinking_tokens > 0:
            body["reasoning_effort"] = effort(ask.thinking_tokens)
    return body


OPENAI_COMPATIBLE = Speaker(
    provider=PROVIDER,
    label=LABEL,
    path="/v1/chat/completions",
    body_of=_body,
    draft_of=lambda ask, sent: Draft(PROVIDER, LABEL, ask.model, sent, expected_tokens(ask, sent)),
    needs_key=False,
    adjustments=(
        adjustment(NINE_CHARACTERS, r"tool call id.{0,120}length of 9"),
        adjustment(EMPTY_SIGNATURES, r"thought_?signature"),
        adjustment(EMPTY_THOUGHTS, r"reasoning_content.{0,80}(?:passed back|required)|missing.{0,20}reasoning_content"),
        adjustment(WITHOUT_THOUGHTS, r"reasoning_content|'?reasoning(?:_details)?'? is (?:not|un)"),
        adjustment("reasoning_effort", r"reasoning_effort"),
        adjustment("stream_options", r"stream_options"),
        adjustment("tool_choice", r"tool_choice"),
        adjustment("max_tokens", LIMIT_REFUSED),
        adjustment("max_completion_tokens", LIMIT_REFUSED),
    ),
)
