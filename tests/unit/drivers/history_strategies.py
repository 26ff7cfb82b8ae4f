"""Generate conversations of any providers, as the history compiler returns them."""

import zlib
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.messages import Message
from tests.unit.drivers.conversation_builders import image_block, model_message, tool_call, tool_result, user_message
from tests.unit.drivers.tested_providers import TESTED_PROVIDERS

MODELS = {name: tested.reasoning_model for name, tested in TESTED_PROVIDERS.items()}
"""A model of each provider that reasons."""
CALL_IDS = ("call 0", "functions.read:0", "toolu_01ABC", "c" * 90, "")
TEXTS = st.text(max_size=8)


def reasoning_blocks(provider: str, number: int) -> list[ReasoningBlock]:
    """Return the reasoning blocks that a provider's response has before a call."""
    payloads: dict[str, list[dict[str, Any]]] = {
        "anthropic": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "cmVk"},
        ],
        "openai": [_item(provider, number), {"type": "message", "phase": "commentary"}],
        "openrouter": [_item(provider, number) | {"format": "x-v1", "status": None}],
        "gemini": [{"thought": "Hm.", "thoughtSignature": "dGhvdWdodA=="}, {"thoughtSignature": "c2ln"}],
        "ollama": [{"thinking": "Hm."}],
        "openai-compatible": [{"reasoning_content": "Hm."}, {"extra_content": {"google": {"thought_signature": "c2"}}}],
    }
    return [
        ReasoningBlock(provider=provider, model=MODELS[provider], payload=payload)
        for payload in payloads.get(provider, ())
    ]


def _item(provider: str, number: int) -> dict[str, Any]:
    sealed = f"sealed:{MODELS[provider]}:{number}"
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": sealed}


def turn_with_rounds(provider: str, turn: str, *, count: int = 2) -> Iterator[Message]:
    """Yield the messages of a turn of several rounds with parallel calls."""
    yield user_message(f"Prompt of {turn}", turn=turn)
    for number in range(count):
        ids = [f"{provider}-call-{number}-{place}" for place in range(2)]
        yield model_message(
            *reasoning_blocks(provider, zlib.crc32(f"{turn} {number}".encode())),
            "Let me look.",
            *map(tool_call, ids),
            turn=turn,
        )
        yield tool_result(ids[0], {"n": number}, turn=turn, images=(image_block(),))
        yield tool_result(ids[1], ok=False, error="No such node", turn=turn)
    yield model_message(*reasoning_blocks(provider, zlib.crc32(turn.encode()))[:1], "Done.", turn=turn)


def _draw_model_message(draw: st.DrawFn, numbers: Iterator[int]) -> list[Message]:
    ids = list(
        dict.fromkeys(draw(st.sampled_from([*CALL_IDS, f"t{next(numbers)}"])) for _ in range(draw(st.integers(0, 3))))
    )
    provider = draw(st.sampled_from(sorted(MODELS)))
    thoughts: list[Block] = list(reasoning_blocks(provider, next(numbers))[: draw(st.integers(0, 2))])
    broken: dict[str, Any] = draw(
        st.sampled_from([{}, {"malformed": True}, {"input": [1]}, {"input": {"a": "\ud83d é"}}])
    )
    calls = [
        tool_call(call_id, draw(st.sampled_from(["read_document", "a tool, named oddly"])), **broken) for call_id in ids
    ]
    rows = [model_message(*thoughts, *draw(st.lists(TEXTS, max_size=2)), *calls)]
    pictures = (image_block(),) * draw(st.integers(0, 1))
    return rows + [
        tool_result(call_id, draw(TEXTS), ok=draw(st.booleans()), error=draw(TEXTS), images=pictures or None)
        for call_id in ids
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    rows: list[Message] = []
    numbers = iter(range(1000))
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            rows.append(user_message(*draw(st.lists(TEXTS, max_size=2)), *[image_block()] * draw(st.integers(0, 1))))
        else:
            rows += _draw_model_message(draw, numbers)
    return rows
