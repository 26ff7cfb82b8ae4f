"""Streams that are cut anywhere mean the same: R1 of the replay scenarios, in each protocol."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.model_io import StreamPart
from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.ollama_chat.accumulator import OllamaAccumulator
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.response_stream import ResponseAccumulator
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder
from tests.strict import anthropic, chat, ollama, openai
from tests.unit.drivers.stream_helpers import (
    chunkings,
    collect_parts,
    get_response,
    in_one_chunk,
    in_single_bytes,
    join_text,
    split_inside_character,
)

STREAMS = {
    "chat": chat.encode_sse(
        chat.text_chunks("那个", "你好🦀"),
        chat.tool_call_chunks(0, "call_1", "weather", '{"city":"杭', '州"}'),
        chat.make_chunk({}, "tool_calls"),
        chat.usage_chunk(),
    ),
    "responses": openai.encode_sse(
        openai.response_created(),
        openai.message_events(0, "那个", "你好🦀"),
        openai.function_call_events(1, "call_1", "weather", '{"city":"杭', '州"}'),
        openai.response_ended(usage=openai.make_usage(30, 12)),
    ),
    "ollama": ollama.encode_ndjson(
        ollama.make_line("那个"),
        ollama.make_line("你好🦀"),
        ollama.tool_call_line("weather", {"city": "杭州"}),
        ollama.done_line(),
    ),
    "messages": anthropic.encode_sse(
        anthropic.message_start(input_tokens=3, output_tokens=1),
        anthropic.text_block(0, "那个", "你好🦀"),
        anthropic.tool_use_block(1, "toolu_1", "weather", '{"city":"杭', '州"}'),
        anthropic.message_stop("tool_use", output_tokens=20),
    ),
}
ACCUMULATORS: dict[str, Callable[[], ResponseAccumulator]] = {
    "chat": lambda: ChatAccumulator("openai-compatible", "Peer", "some-model", b"request", 0),
    "responses": lambda: ResponsesAccumulator("openai", "gpt-5.2", b"request"),
    "ollama": lambda: OllamaAccumulator("ollama", "Ollama", "qwen3", b"request", 0),
    "messages": lambda: MessagesAccumulator("claude-sonnet-4-5", b"request"),
}
CUTS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": in_one_chunk,
    "single bytes": in_single_bytes,
    "E9|82A3": lambda stream: split_inside_character(stream, "那", 1),
    "F09F|A680": lambda stream: split_inside_character(stream, "🦀", 2),
    "in the arguments": lambda stream: split_inside_character(stream, "杭", 1),
}


def collect(protocol: str, chunks: list[bytes]) -> list[StreamPart]:
    decoder = NdjsonDecoder() if protocol == "ollama" else SseDecoder()
    return collect_parts(ACCUMULATORS[protocol](), chunks, decoder)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("protocol", STREAMS)
def test_r1_a_character_split_between_chunks_arrives_whole(protocol: str, cut: str) -> None:
    parts = collect(protocol, CUTS[cut](STREAMS[protocol]))
    assert join_text(parts) == "那个你好🦀"
    assert parts == collect(protocol, [STREAMS[protocol]])
    call = get_response(parts).blocks[1]
    assert isinstance(call, ToolCallBlock)
    assert call.input == {"city": "杭州"}
    assert "\ufffd" not in repr(parts)


@pytest.mark.parametrize("protocol", STREAMS)
@given(st.data())
def test_r1_any_chunking_gives_the_same_parts(protocol: str, data: st.DataObject) -> None:
    chunks = data.draw(chunkings(STREAMS[protocol]))
    assert collect(protocol, chunks) == collect(protocol, [STREAMS[protocol]])
