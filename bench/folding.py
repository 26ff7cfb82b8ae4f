"""What processor time it takes to turn a provider's stream into pieces: bytes, frames, JSON, the driver's own fold."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.table import Row
from fermata.drivers.driver import PROVIDERS, driver_for
from fermata.drivers.hearing import pieces_of
from fermata.drivers.line import Answer as Response
from fermata.drivers.speaker import Speaker
from fermata.words.messages import Message
from fermata.words.model import Ask, Piece, Reply
from local.demo_model.answer import Answer, Call, events
from local.demo_model.server import VOICES

LENGTHS = (100, 1000, 10_000)
TARGET = 1.0
"""Milliseconds for 100 events."""
CHUNK = 4096
MODEL = "fermata-demo"
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openrouter": "/api/v1/responses",
    "ollama": "/api/chat",
    "openai-compatible": "/v1/chat/completions",
}


def folding_cost(lengths: Sequence[int] = LENGTHS) -> Row:
    """The dearest of all drivers and lengths of a stream."""
    costs = {
        f"{provider}, {length}": round(cpu_ms_per_100_events(provider, length), 3)
        for provider in PROVIDERS
        for length in lengths
    }
    dearest = max(costs, key=lambda name: costs[name])
    what = "CPU ms to fold 100 events of a provider's stream, dearest driver"
    result = f"{costs[dearest]:.2f} ({dearest} events)"
    return Row("folding", what, f"≤ {TARGET:g}", result, costs[dearest] <= TARGET, {"ms": costs})


def cpu_ms_per_100_events(provider: str, length: int, times: int = 3) -> float:
    """Of `times` runs the fastest, because other work on the machine only ever adds."""
    stream = recorded(provider, length)
    count = sum(chunk.count(b"\n") for chunk in stream) if provider == "ollama" else _frames(stream)
    return min(_seconds(provider, stream) for _ in range(times)) * 1000 / count * 100


def recorded(provider: str, length: int) -> list[bytes]:
    """An answer of about `length` events as the demo model says it: thinking, then mostly text, then a call."""
    answer = Answer(
        text=" ".join(["word"] * (length - 20)),
        calls=(Call("insertHtml", {"html": "<p>Hello</p>" * 20}),),
        thinking="What could they want, and where would it go?",
        signature="c2lnbmF0dXJl",
    )
    body: dict[str, Any] = {"model": MODEL, "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    speech = VOICES[PATHS[provider]].speech(body, answer, {"input_tokens": 1000, "output_tokens": length})
    said = [*speech.opening()]
    for event in events(answer, 0):
        said += speech.frames(event)
    whole = b"".join([*said, *speech.closing()])
    return [whole[at : at + CHUNK] for at in range(0, len(whole), CHUNK)]


def folded(provider: str, stream: list[bytes]) -> Iterator[Piece]:
    driver = driver_for(provider)
    if not isinstance(driver, Speaker):
        raise TypeError(f"{provider} has no fold to measure.")
    ask = Ask(model=MODEL, system="", messages=(Message(position=0, role="user", content=(), turn="t"),))
    draft = driver.draft_of(ask, b"request")
    return pieces_of(driver.label, Response(200, {}, iter(stream)), draft, "", driver.stream_of())


def _seconds(provider: str, stream: list[bytes]) -> float:
    started, last = time.thread_time(), None
    for piece in folded(provider, stream):
        last = piece
    taken = time.thread_time() - started
    if not isinstance(last, Reply):
        raise TypeError(f"The stream of {provider} ended without a reply.")
    return taken


def _frames(stream: list[bytes]) -> int:
    return b"".join(stream).count(b"\n\n")
