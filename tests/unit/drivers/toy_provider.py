"""A provider of chat completions with a name of its own: what an extension consists of."""

from collections.abc import Iterator
from typing import Any

from fermata.domain.model_info import ModelInfo
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import AppliedAdjustments, drop_field
from fermata.drivers.model_list_parsing import build_model_info, iter_model_entries
from fermata.drivers.model_listing import ModelListClient
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.provider import TEXT_AND_TOOLS, Provider
from fermata.drivers.providers.openai_compatible import build_chat_body
from fermata.drivers.thinking_allowance import default_thinking_allowance

NAME, LABEL = "toy", "Toy"


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = default_thinking_allowance(request.model, request.thinking_tokens)
    return build_chat_body(request, NAME, applied, thinking_allowance=allowance)


def _list_models(client: ModelListClient) -> Iterator[ModelInfo]:
    for entry in iter_model_entries(client.get_json("/v1/models")):
        yield build_model_info(entry, TEXT_AND_TOOLS)


PROVIDER = Provider(
    name=NAME,
    label=LABEL,
    default_url="https://api.toy.example",
    path="/v1/chat/completions",
    build_body=_build_body,
    make_accumulator=lambda request, body: ChatAccumulator(NAME, LABEL, request.model, body, 0),
    list_models=_list_models,
    adjustments=(drop_field("stream_options", r"stream_options"),),
)
