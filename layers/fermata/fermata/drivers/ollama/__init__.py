"""Ollama's own chat protocol: the one that lets a request choose its context window."""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.ollama_chat.accumulator import OLLAMA_LABEL, OLLAMA_NAME, OllamaAccumulator
from fermata.drivers.protocols.ollama_chat.request import build_request_body
from fermata.drivers.protocols.token_usage import estimate_request_tokens
from fermata.drivers.provider import AppliedAdjustments, Provider, make_adjustment
from fermata.drivers.transport.stream_decoders import NdjsonDecoder


def _body(ask: ModelRequest, _: AppliedAdjustments) -> dict[str, Any]:
    return build_request_body(ask, OLLAMA_NAME)


OLLAMA = Provider(
    name=OLLAMA_NAME,
    label=OLLAMA_LABEL,
    path="/api/chat",
    build_body=_body,
    make_accumulator=lambda ask, sent: OllamaAccumulator(ask.model, sent, estimate_request_tokens(ask, sent)),
    make_decoder=NdjsonDecoder,
    requires_key=False,
    adjustments=(make_adjustment("think", r"does not support thinking|think value"),),
)
