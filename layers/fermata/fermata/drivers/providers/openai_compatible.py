"""Describe any server that speaks chat completions, at an address of the customer's own (decision 0073)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fermata.domain.model_info import ModelInfo
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import (
    ADD_PLACEHOLDER_SIGNATURES,
    MERGE_SYSTEM_INTO_PROMPT,
    NINE_CHARACTER_CALL_IDS,
    OUTPUT_LIMIT_REFUSAL,
    Adjustment,
    AppliedAdjustments,
    drop_field,
)
from fermata.drivers.model_list_parsing import (
    build_model_info,
    get_object,
    get_short_text,
    get_texts,
    iter_model_entries,
)
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.chat_completions.request import (
    ADD_EMPTY_REASONING,
    ANSWER_RESULTS,
    NAME_RESULTS,
    OMIT_REASONING_FIELDS,
    SPLIT_PARALLEL_CALLS,
    build_request_body,
)
from fermata.drivers.protocols.token_usage import estimate_request_tokens
from fermata.drivers.provider import TEXT_AND_TOOLS, VISION_AND_TOOLS, ModelTraits, Provider
from fermata.drivers.provider_options import encode_chat_options
from fermata.drivers.sampling_fields import CHAT_SAMPLING, NO_SAMPLING, SamplingFields
from fermata.drivers.thinking_allowance import OPENAI_THINKING_TOKENS, effort_from_tokens, is_openai_reasoning_model

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

_NAME = "openai-compatible"
_LABEL = "The model server"


def _get_thinking_allowance(model: str, tokens: int) -> int:
    return tokens or (OPENAI_THINKING_TOKENS if is_openai_reasoning_model(model) else 0)


def build_chat_body(
    request: ModelRequest, provider: str, applied: AppliedAdjustments, *, thinking_allowance: int
) -> dict[str, Any]:
    """Build the body of a server that nothing more is known of than that it speaks chat completions."""
    body = build_request_body(request, provider, applied)
    body["max_tokens"] += thinking_allowance
    return body


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = _get_thinking_allowance(request.model, request.thinking_tokens)
    body = build_chat_body(request, _NAME, applied, thinking_allowance=allowance)
    if is_openai_reasoning_model(request.model):  # one of OpenAI's own models behind another address
        body["max_completion_tokens"] = body.pop("max_tokens")
        if request.thinking_tokens > 0:
            body["reasoning_effort"] = effort_from_tokens(request.thinking_tokens)
    return body


def _get_sampling_fields(request: ModelRequest) -> SamplingFields:
    return NO_SAMPLING if is_openai_reasoning_model(request.model) else CHAT_SAMPLING


CHAT_PATH = "/v1/chat/completions"


def _make_accumulator(request: ModelRequest, body: bytes) -> ChatAccumulator:
    return ChatAccumulator(_NAME, _LABEL, request.model, body, estimate_request_tokens(request, body))


def list_chat_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    """List the models of a server that speaks chat completions."""
    for entry in iter_model_entries(client.get_json("/v1/models")):
        capabilities = VISION_AND_TOOLS if _declares_vision(entry) else TEXT_AND_TOOLS
        yield build_model_info(entry, capabilities, label=get_short_text(entry, "name"))


def _declares_vision(entry: Mapping[str, Any]) -> bool:
    """Return whether a model reads images, which servers declare in several ways."""
    declared = (
        get_texts(entry, "capabilities")
        + get_texts(entry, "input_modalities")
        + get_texts(get_object(entry, "architecture"), "input_modalities")
    )
    flag = get_object(entry, "capabilities").get("vision")
    return flag is True or not {"vision", "multimodal", "image"}.isdisjoint(declared)


CHAT_ADJUSTMENTS = (
    NINE_CHARACTER_CALL_IDS,
    Adjustment(ANSWER_RESULTS, r"unexpected role .?user.? after role .?tool|roles must alternate"),
    Adjustment(SPLIT_PARALLEL_CALLS, r"single tool.?calls? at once|(?:multiple|parallel) tool.?calls? (?:is|are) not"),
    Adjustment(
        MERGE_SYSTEM_INTO_PROMPT,
        r"(?:system|developer)['\" ]*(?:role|message|prompt|instruction)s?['\" ]*(?:is |are )?not|"
        r"role['\" ]*does not support ['\"]system|only user and assistant roles",
    ),
    Adjustment(NAME_RESULTS, r"function_?response\.?name|(?:tool|function) message.{0,40}\bname\b"),
    Adjustment(ADD_PLACEHOLDER_SIGNATURES, r"thought_?signature"),
    Adjustment(
        ADD_EMPTY_REASONING,
        r"reasoning_content.{0,80}(?:passed back|required|missing)|missing.{0,20}reasoning_content",
    ),
    Adjustment(
        OMIT_REASONING_FIELDS,
        r"^(?!.*(?:passed back|missing|required)).*reasoning_content|'?reasoning(?:_details)?'? is (?:not|un)|"
        r"both content and thinking",
    ),
    drop_field("reasoning_effort", r"reasoning_effort"),
    drop_field("stream_options", r"stream_options"),
    drop_field("tool_choice", r"tool_choice"),
    drop_field("response_format", r"response_format|json_schema|structured output"),
    drop_field("max_tokens", OUTPUT_LIMIT_REFUSAL),
    drop_field("max_completion_tokens", OUTPUT_LIMIT_REFUSAL),
)
PROVIDER = Provider(
    name=_NAME,
    label=_LABEL,
    path=CHAT_PATH,
    build_body=_build_body,
    encode_options=encode_chat_options,
    make_accumulator=_make_accumulator,
    list_models=list_chat_models,
    requires_key=False,
    adjustments=CHAT_ADJUSTMENTS,
    models=ModelTraits(thinking_allowance=_get_thinking_allowance, get_sampling_fields=_get_sampling_fields),
)
