"""Measure the processor time to decode a provider's stream: bytes, frames, JSON, and the driver's accumulator."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.report import ResultRow
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart
from fermata.drivers.protocols.response_stream import iter_parts
from fermata.drivers.provider import Provider
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.connection_interface import ProviderResponse
from local.demo_model.model_answer import ModelAnswer, ToolCall, iter_content_events
from local.demo_model.server import PROTOCOLS_BY_PATH

STREAM_LENGTHS = (100, 1000, 10_000)
MAX_MS_PER_100_EVENTS = 1.0
CHUNK_BYTES = 4096
MODEL = "fermata-demo"
PATH_BY_PROVIDER = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openrouter": "/api/v1/responses",
    "gemini": "/v1beta/models/{model}:streamGenerateContent",
    "ollama": "/api/chat",
    "openai-compatible": "/v1/chat/completions",
}


def measure_stream_decoding(lengths: Sequence[int] = STREAM_LENGTHS) -> ResultRow:
    """Measure all drivers with streams of all lengths. The row shows the most expensive one."""
    cost_by_case = {
        f"{provider}, {length}": round(cpu_ms_per_100_events(provider, length), 3)
        for provider in PROVIDER_MODULES
        for length in lengths
    }
    case, cost_ms = max(cost_by_case.items(), key=lambda item: item[1])
    return ResultRow(
        "folding",
        "CPU ms to fold 100 events of a provider's stream, dearest driver",
        f"≤ {MAX_MS_PER_100_EVENTS:g}",
        f"{cost_ms:.2f} ({case} events)",
        cost_ms <= MAX_MS_PER_100_EVENTS,
        {"ms": cost_by_case},
    )


def cpu_ms_per_100_events(provider: str, length: int, repetitions: int = 3) -> float:
    """Return the time of the fastest run, because other work on the machine only adds to it."""
    stream = record_stream(provider, length)
    event_count = _count_lines(stream) if provider == "ollama" else _count_sse_frames(stream)
    return min(_time_decoding(provider, stream) for _ in range(repetitions)) * 1000 / event_count * 100


def record_stream(provider: str, length: int) -> list[bytes]:
    """Encode an answer of about `length` events with the demo model: thinking, then mostly text, then a call."""
    answer = ModelAnswer(
        text=" ".join(["word"] * (length - 20)),
        tool_calls=(ToolCall("insertHtml", {"html": "<p>Hello</p>" * 20}),),
        thinking="What could they want, and where would it go?",
        signature="c2lnbmF0dXJl",
    )
    body: dict[str, Any] = {"model": MODEL, "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    protocol = PROTOCOLS_BY_PATH[PATH_BY_PROVIDER[provider]]
    encoder = protocol.make_encoder(body, answer, {"input_tokens": 1000, "output_tokens": length})
    frames = [*encoder.encode_opening()]
    for event in iter_content_events(answer, 0):
        frames += encoder.encode_event(event)
    stream = b"".join([*frames, *encoder.encode_closing()])
    return [stream[start : start + CHUNK_BYTES] for start in range(0, len(stream), CHUNK_BYTES)]


def decode_stream(provider: str, stream: list[bytes]) -> Iterator[StreamPart]:
    driver = get_provider(provider)
    if not isinstance(driver, Provider):
        raise TypeError(f"{provider} has no fold to measure.")
    message = Message(position=0, role="user", content=(), turn="t")
    accumulator = driver.make_accumulator(ModelRequest(model=MODEL, system="", messages=(message,)), b"request")
    response = ProviderResponse(200, {}, iter(stream))
    return iter_parts(driver.label, response, accumulator, "", driver.make_decoder())


def _time_decoding(provider: str, stream: list[bytes]) -> float:
    """Return the processor seconds to decode a stream."""
    started = time.thread_time()
    last_part = None
    for part in decode_stream(provider, stream):
        last_part = part
    seconds = time.thread_time() - started
    if not isinstance(last_part, ModelResponse):
        raise TypeError(f"The stream of {provider} ended without a reply.")
    return seconds


def _count_lines(stream: list[bytes]) -> int:
    return sum(chunk.count(b"\n") for chunk in stream)


def _count_sse_frames(stream: list[bytes]) -> int:
    return b"".join(stream).count(b"\n\n")
