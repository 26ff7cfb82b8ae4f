"""Hold one complete stream of each provider: reasoning, text, a call, usage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.gemini_generate.accumulator import GeminiAccumulator
from fermata.drivers.protocols.ollama_chat.accumulator import OllamaAccumulator
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.response_stream import ResponseAccumulator
from fermata.drivers.providers.openrouter import OpenRouterAccumulator
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder
from tests.strict import anthropic, chat, gemini, ollama, openai

Event = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    events: tuple[Event, ...]
    make_accumulator: Callable[[], ResponseAccumulator]
    make_decoder: Callable[[], SseDecoder | NdjsonDecoder] = SseDecoder


def _flat(*events: Event | Sequence[Event]) -> tuple[Event, ...]:
    return tuple(event for item in events for event in ([item] if isinstance(item, dict) else item))


_THOUGHT = anthropic.content_block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Hm."},
    {"type": "signature_delta", "signature": "c2ln"},
)
_RESPONSE = (
    openai.response_created(),
    *openai.reasoning_events(0, "Hm.", "So."),
    *openai.message_events(1, "Hi", " there", phase="commentary"),
    *openai.function_call_events(2, "call_1", "read", '{"a":', "1}"),
)
_REPEATED = [{"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi there"}]}]
_PAID = openai.make_usage(cost=0.1, is_byok=True, cost_details={"upstream_inference_cost": 1})

RECORDINGS = {
    "anthropic": Recording(
        _flat(
            anthropic.message_start(input_tokens=3, output_tokens=1, cache_creation={"ephemeral_5m_input_tokens": 1}),
            _THOUGHT,
            anthropic.text_block(1, "Hi", " there"),
            anthropic.tool_use_block(2, "toolu_1", "read", '{"a":', "1}"),
            anthropic.message_stop("tool_use", output_tokens=5),
        ),
        lambda: MessagesAccumulator("model", b"request"),
    ),
    "openai": Recording(
        _flat(_RESPONSE, openai.response_ended(output=_REPEATED, incomplete_details={"reason": None})),
        lambda: ResponsesAccumulator("openai", "model", b"request"),
    ),
    "openrouter": Recording(
        _flat(_RESPONSE, openai.response_ended(usage=_PAID)),
        lambda: OpenRouterAccumulator("openrouter", "model", b"request"),
    ),
    "gemini": Recording(
        _flat(
            gemini.make_chunk(gemini.thought_part("Hm.")),
            gemini.make_chunk(gemini.text_part("Hi")),
            gemini.make_chunk(gemini.text_part(" there")) | {"usageMetadata": {"promptTokenCount": 10}},
            gemini.make_chunk(gemini.call_part("read", {"a": 1}, call_id="call_1", signature=gemini.SIGNATURE)),
            gemini.end_chunk(cachedContentTokenCount=1, thoughtsTokenCount=2),
        ),
        lambda: GeminiAccumulator("gemini", "Google Gemini", "model", b"request"),
    ),
    "ollama": Recording(
        _flat(ollama.make_line("Hi", thinking="Hm."), ollama.tool_call_line("read", {"a": 1}), ollama.done_line()),
        lambda: OllamaAccumulator("ollama", "Ollama", "model", b"request", 0),
        NdjsonDecoder,
    ),
    "openai-compatible": Recording(
        _flat(
            chat.make_chunk({"reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]}),
            chat.text_chunks("Hi", " there"),
            chat.tool_call_chunks(0, "call_1", "read", '{"a":', "1}"),
            chat.make_chunk({"refusal": None}, "tool_calls"),
            chat.usage_chunk(prompt_tokens_details={"cached_tokens": 1}),
        ),
        lambda: ChatAccumulator("openai-compatible", "Peer", "model", b"request", 0),
    ),
}
