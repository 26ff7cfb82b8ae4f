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
from fermata.drivers.openai import ROOM_TO_THINK, thinks
from fermata.drivers.speaker import LIMIT_REFUSED, Adjusted, Speaker, adjustment
from fermata.words.model import Ask

PROVIDER = "openai-compatible"
LABEL = "The model server"


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    body = body_of(ask, PROVIDER, adjusted)
    if thinks(ask.model):  # OpenAI's own models behind another address
        body["max_completion_tokens"] = body.pop("max_tokens") + (ask.thinking_tokens or ROOM_TO_THINK)
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
        adjustment("stream_options", r"stream_options"),
        adjustment("tool_choice", r"tool_choice"),
        adjustment("max_tokens", LIMIT_REFUSED),
        adjustment("max_completion_tokens", LIMIT_REFUSED),
    ),
)
