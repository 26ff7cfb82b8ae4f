"""What processor time it takes to turn a provider's stream into pieces: bytes, frames, JSON, the driver's own fold."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.report import ResultRow
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart
from fermata.drivers.protocols.response_stream import iter_parts
from fermata.drivers.provider import Provider
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.connection import ProviderResponse as Response
from local.demo_model.model_answer import ModelAnswer, ToolCall, iter_content_events
from local.demo_model.server import PROTOCOLS_BY_PATH

STREAM_LENGTHS = (100, 1000, 10_000)
MAX_MS_PER_100_EVENTS = 1.0
"""Milliseconds for 100 events."""
CHUNK_BYTES = 4096
MODEL = "fermata-demo"
PATH_BY_PROVIDER = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openrouter": "/api/v1/responses",
    "ollama": "/api/chat",
    "openai-compatible": "/v1/chat/completions",
}


def measure_stream_decoding(lengths: Sequence[int] = STREAM_LENGTHS) -> ResultRow:
    """The dearest of all drivers and lengths of a stream."""
    costs = {
        f"{provider}, {length}": round(cpu_ms_per_100_events(provider, length), 3)
        for provider in PROVIDER_MODULES
        for length in lengths
    }
    dearest = max(costs, key=lambda name: costs[name])
    what = "CPU ms to fold 100 events of a provider's stream, dearest driver"
    result = f"{costs[dearest]:.2f} ({dearest} events)"
    return ResultRow(
        "folding", what, f"≤ {MAX_MS_PER_100_EVENTS:g}", result, costs[dearest] <= MAX_MS_PER_100_EVENTS, {"ms": costs}
    )


def cpu_ms_per_100_events(provider: str, length: int, times: int = 3) -> float:
    """Of `times` runs the fastest, because other work on the machine only ever adds."""
    stream = record_stream(provider, length)
    count = sum(chunk.count(b"\n") for chunk in stream) if provider == "ollama" else _frames(stream)
    return min(_seconds(provider, stream) for _ in range(times)) * 1000 / count * 100


def record_stream(provider: str, length: int) -> list[bytes]:
    """An answer of about `length` events as the demo model says it: thinking, then mostly text, then a call."""
    answer = ModelAnswer(
        text=" ".join(["word"] * (length - 20)),
        tool_calls=(ToolCall("insertHtml", {"html": "<p>Hello</p>" * 20}),),
        thinking="What could they want, and where would it go?",
        signature="c2lnbmF0dXJl",
    )
    body: dict[str, Any] = {"model": MODEL, "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    speech = PROTOCOLS_BY_PATH[PATH_BY_PROVIDER[provider]].make_encoder(
        body, answer, {"input_tokens": 1000, "output_tokens": length}
    )
    said = [*speech.encode_opening()]
    for event in iter_content_events(answer, 0):
        said += speech.encode_event(event)
    whole = b"".join([*said, *speech.encode_closing()])
    return [whole[at : at + CHUNK_BYTES] for at in range(0, len(whole), CHUNK_BYTES)]


def decode_stream(provider: str, stream: list[bytes]) -> Iterator[StreamPart]:
    driver = get_provider(provider)
    if not isinstance(driver, Provider):
        raise TypeError(f"{provider} has no fold to measure.")
    ask = ModelRequest(model=MODEL, system="", messages=(Message(position=0, role="user", content=(), turn="t"),))
    draft = driver.make_accumulator(ask, b"request")
    return iter_parts(driver.label, Response(200, {}, iter(stream)), draft, "", driver.make_decoder())


def _seconds(provider: str, stream: list[bytes]) -> float:
    started, last = time.thread_time(), None
    for piece in decode_stream(provider, stream):
        last = piece
    taken = time.thread_time() - started
    if not isinstance(last, ModelResponse):
        raise TypeError(f"The stream of {provider} ended without a reply.")
    return taken


def _frames(stream: list[bytes]) -> int:
    return b"".join(stream).count(b"\n\n")
