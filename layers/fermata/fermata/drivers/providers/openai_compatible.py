"""Any server that speaks chat completions, at an address of the customer's own."""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.chat_completions.request import (
    ADD_EMPTY_REASONING,
    ADD_PLACEHOLDER_SIGNATURES,
    NINE_CHARACTER_CALL_IDS,
    OMIT_REASONING_FIELDS,
    build_request_body,
)
from fermata.drivers.protocols.token_usage import estimate_request_tokens
from fermata.drivers.provider import OUTPUT_LIMIT_REFUSAL, AppliedAdjustments, Provider, make_adjustment
from fermata.drivers.thinking_budget import effort_from_tokens, get_thinking_allowance, is_openai_reasoning_model

_NAME = "openai-compatible"
_LABEL = "The model server"


def _body(ask: ModelRequest, adjusted: AppliedAdjustments) -> dict[str, Any]:
    body = build_request_body(ask, _NAME, adjusted)
    body["max_tokens"] += get_thinking_allowance(_NAME, ask.model, ask.thinking_tokens)
    if is_openai_reasoning_model(ask.model):  # OpenAI's own models behind another address
        body["max_completion_tokens"] = body.pop("max_tokens")
        if ask.thinking_tokens > 0:
            body["reasoning_effort"] = effort_from_tokens(ask.thinking_tokens)
    return body


OPENAI_COMPATIBLE = Provider(
    name=_NAME,
    label=_LABEL,
    path="/v1/chat/completions",
    build_body=_body,
    make_accumulator=lambda ask, sent: ChatAccumulator(
        _NAME, _LABEL, ask.model, sent, estimate_request_tokens(ask, sent)
    ),
    requires_key=False,
    adjustments=(
        make_adjustment(NINE_CHARACTER_CALL_IDS, r"tool call id.{0,120}length of 9"),
        make_adjustment(ADD_PLACEHOLDER_SIGNATURES, r"thought_?signature"),
        make_adjustment(
            ADD_EMPTY_REASONING, r"reasoning_content.{0,80}(?:passed back|required)|missing.{0,20}reasoning_content"
        ),
        make_adjustment(OMIT_REASONING_FIELDS, r"reasoning_content|'?reasoning(?:_details)?'? is (?:not|un)"),
        make_adjustment("reasoning_effort", r"reasoning_effort"),
        make_adjustment("stream_options", r"stream_options"),
        make_adjustment("tool_choice", r"tool_choice"),
        make_adjustment("max_tokens", OUTPUT_LIMIT_REFUSAL),
        make_adjustment("max_completion_tokens", OUTPUT_LIMIT_REFUSAL),
    ),
)
