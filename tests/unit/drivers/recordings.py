"""An answer of each provider with everything in it: thoughts, text, a call, usage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.drivers.anthropic.fold import Draft as AnthropicDraft
from fermata.drivers.chat.fold import Draft as ChatDraft
from fermata.drivers.hearing import Draft
from fermata.drivers.ollama.fold import Draft as OllamaDraft
from fermata.drivers.openrouter import Draft as OpenRouterDraft
from fermata.drivers.responses.fold import Draft as ResponsesDraft
from fermata.drivers.sse import Frames, Lines
from tests.strict import anthropic, chat, ollama, openai

Event = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    events: tuple[Event, ...]
    draft: Callable[[], Draft]
    stream: Callable[[], Frames | Lines] = Frames


def _flat(*events: Event | Sequence[Event]) -> tuple[Event, ...]:
    return tuple(one for item in events for one in ([item] if isinstance(item, dict) else item))


_THOUGHT = anthropic.block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Hm."},
    {"type": "signature_delta", "signature": "c2ln"},
)
_RESPONSE = (
    openai.created(),
    *openai.reasoning(0, "Hm.", "So."),
    *openai.message(1, "Hi", " there", phase="commentary"),
    *openai.call(2, "call_1", "read", '{"a":', "1}"),
)
_REPEATED = [{"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi there"}]}]
_PAID = openai.usage(cost=0.1, is_byok=True, cost_details={"upstream_inference_cost": 1})

RECORDINGS = {
    "anthropic": Recording(
        _flat(
            anthropic.started(input_tokens=3, output_tokens=1, cache_creation={"ephemeral_5m_input_tokens": 1}),
            _THOUGHT,
            anthropic.text(1, "Hi", " there"),
            anthropic.tool(2, "toolu_1", "read", '{"a":', "1}"),
            anthropic.stopped("tool_use", output_tokens=5),
        ),
        lambda: AnthropicDraft("model", b"request"),
    ),
    "openai": Recording(
        _flat(_RESPONSE, openai.ended(output=_REPEATED, incomplete_details={"reason": None})),
        lambda: ResponsesDraft("openai", "model", b"request"),
    ),
    "openrouter": Recording(
        _flat(_RESPONSE, openai.ended(usage=_PAID)), lambda: OpenRouterDraft("openrouter", "model", b"request")
    ),
    "ollama": Recording(
        _flat(ollama.line("Hi", thinking="Hm."), ollama.call("read", {"a": 1}), ollama.done()),
        lambda: OllamaDraft("model", b"request", 0),
        Lines,
    ),
    "openai-compatible": Recording(
        _flat(
            chat.chunk({"reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]}),
            chat.says("Hi", " there"),
            chat.calls(0, "call_1", "read", '{"a":', "1}"),
            chat.chunk({"refusal": None}, "tool_calls"),
            chat.used(prompt_tokens_details={"cached_tokens": 1}),
        ),
        lambda: ChatDraft("openai-compatible", "Peer", "model", b"request", 0),
    ),
}
