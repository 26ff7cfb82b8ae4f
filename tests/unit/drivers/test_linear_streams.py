"""A stream twice as long takes twice the time, whatever a server sends."""

import contextlib
import functools
import gzip
import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from fermata.domain.errors import ProviderError
from fermata.drivers.error_mapping import error_from_response
from fermata.drivers.protocols.response_stream import iter_parts
from fermata.drivers.protocols.thinking_tags import split_thinking_from_parts
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.content_decoding import decode_chunks
from fermata.drivers.transport.stream_decoders import NdjsonDecoder
from tests.growth.growing_values import Growing, find_slow_values, iter_growing_values
from tests.growth.measure_growth import MAX_GROWTH, measure_growth
from tests.quick_suite_samples import sample_for_quick_suite
from tests.strict import anthropic, chat, ollama
from tests.unit.drivers.odd_streams import DONE, STOP, encode, fragment
from tests.unit.drivers.recorded_streams import RECORDINGS

SMALL, LARGE = 200, 1600
STREAM_CHARS = 20_000
TEXTS = ("a", "</", "{}", "`", "\n")
NOTICEABLE_SECONDS = 0.01
PARTS = 5
"""Of the streams that are made of a recorded one, in turn."""


def measure(prepare: Callable[[int], Callable[[], object]]) -> float:
    return measure_growth(prepare, SMALL, LARGE, noticeable_seconds=NOTICEABLE_SECONDS)


def content(text: str) -> Any:
    return chat.make_chunk({"content": text})


def details(members: Sequence[Any]) -> Any:
    return chat.make_chunk({"reasoning_details": members})


CHAT: dict[str, Callable[[int], bytes]] = {
    "arguments whose every fragment repeats id and name": lambda n: encode(
        *(fragment('{"a": "}' if i == 0 else "{x}" * 40 + "}", "x", "call_a") for i in range(n)), DONE
    ),
    "whole arguments again and again": lambda n: encode(*(fragment('{"a": 1}', "x", "call_a") for _ in range(n)), DONE),
    "other whole arguments again and again": lambda n: encode(
        *(fragment(json.dumps({"a": i}), call_id="call_a") for i in range(n)), DONE
    ),
    "empty objects": lambda n: encode(*(fragment("{},", "x" if i == 0 else None) for i in range(n)), DONE),
    "calls with one id": lambda n: encode(*(fragment("{}", "x", "a", i) for i in range(n)), DONE),
    "messages without content": lambda n: encode(
        content("x" * 40 * n), *({"choices": [{"message": {"role": "assistant"}}]} for _ in range(n)), DONE
    ),
    "ends without end": lambda n: encode(
        *(content("x" * 200) for _ in range(n)), *(chat.make_chunk({"content": "y"}, "stop") for _ in range(n)), DONE
    ),
    "reasoning of one index": lambda n: encode(
        *(details([{"type": "reasoning.text", "index": 0, "text": "x" * 200}]) for _ in range(n)), STOP, DONE
    ),
    "reasoning of many indexes": lambda n: encode(
        details([{"type": "reasoning.text", "index": i, "text": "x"} for i in range(4 * n)]), STOP, DONE
    ),
    "reasoning of many ids": lambda n: encode(
        details([{"type": "reasoning.encrypted", "index": 0, "id": str(i), "data": "x"} for i in range(4 * n)]), DONE
    ),
    "blank text": lambda n: encode(*(content("\n" * 200) for _ in range(n)), content("x"), STOP, DONE),
    "closing tags": lambda n: encode(content("</think>" * 20 * n), STOP, DONE),
    "opening tags": lambda n: encode(content("<think>x</think>y" * 20 * n), STOP, DONE),
    "backticks": lambda n: encode(content("`" * 40 * n), content("<think>" * n), STOP, DONE),
    "lines of data": lambda n: b'data: {"a":[{}\n' + b"data: ,{}\n" * 8 * n + b"\n",
    "lines without data": lambda n: b'data: {"a":[{}\n' + b",{}\n" * 8 * n + b"\n",
    "names behind the data": lambda n: b'data: {"a":"' + b"x" * 40 * n + b'"}\n' + b"event: a\n" * 8 * n,
    "a name in pieces": lambda n: encode(*(fragment(None, f"x{i}", "call_a") for i in range(8 * n)), DONE),
    "values on one line": lambda n: b"data: " + b"{}" * 40 * n + b"\n\n",
    "brackets that nothing closes": lambda n: b"data: " + b"{}[" * 40 * n + b"\n\n",
}  # fmt: skip
OTHERS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "blocks of one index": (
        "anthropic",
        lambda n: anthropic.encode_sse(*(anthropic.text_block(0, "x") for _ in range(n)), anthropic.message_stop("x")),
    ),
    "lines of one object": ("ollama", lambda n: b'{"a":[{}\n' + b",{}\n" * 8 * n),
    "lines of one id": (
        "ollama",
        lambda n: ollama.encode_ndjson(*(ollama.tool_call_line("x", {}) for _ in range(n)), ollama.done_line()),
    ),
}


def split_in_pieces(stream: bytes, size: int = 97) -> list[bytes]:
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def read_stream(provider: str, stream: bytes) -> None:
    recording = RECORDINGS[provider]
    response = ProviderResponse(200, {}, iter(split_in_pieces(stream)))
    parts = iter_parts("Peer", response, recording.make_accumulator(), "", recording.make_decoder())
    with contextlib.suppress(ProviderError):
        list(split_thinking_from_parts(parts))


@pytest.mark.parametrize(
    ("provider", "make_stream"),
    [*(("openai-compatible", make) for make in CHAT.values()), *OTHERS.values()],
    ids=[*CHAT, *OTHERS],
)
def test_a_stream_takes_time_in_proportion_to_its_length(provider: str, make_stream: Callable[[int], bytes]) -> None:
    assert measure(lambda size: functools.partial(read_stream, provider, make_stream(size))) <= MAX_GROWTH


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
@pytest.mark.parametrize("provider", RECORDINGS)
def test_each_event_takes_time_in_proportion_to_its_number_and_size(provider: str, part: int) -> None:
    """Each event of a recorded stream comes again and again, or a part of it grows.

    Every provider has a recorded stream (test_malformed_events.py).
    """

    def prepare(events: Sequence[Any]) -> Callable[[], object]:
        return functools.partial(read_stream, provider, encode_stream(provider, events))

    values = itertools.islice(iter_growing_streams(RECORDINGS[provider].events), part, None, PARTS)
    assert find_slow_values(values, prepare, STREAM_CHARS, NOTICEABLE_SECONDS) == []


def iter_growing_streams(events: tuple[Any, ...]) -> Iterator[Growing]:
    kinds = [json.dumps(event.get("type", sorted(event))) for event in events]
    for index, event in enumerate(events):
        if kinds[index] in kinds[:index]:
            continue
        before, after = events[:index], events[index + 1 :]
        length = len(json.dumps(event))
        yield Growing(
            f"event {index} again",
            lambda size, ends=(before, after), event=event, length=length: (
                *ends[0],
                *[event] * (8 * size // length),
                *ends[1],
            ),
        )
        for growing in iter_growing_values(event, TEXTS):
            yield Growing(
                f"event {index} {growing.name}",
                lambda size, ends=(before, after), make=growing.make: (*ends[0], make(size), *ends[1]),
            )


def encode_stream(provider: str, events: Sequence[Any]) -> bytes:
    if RECORDINGS[provider].make_decoder is NdjsonDecoder:
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return encode(*events)


@pytest.mark.parametrize(
    "word", ["limit", "read", "images ", "prompt ", "input\n", "Bearer ", "sk-", "maximum\u00e9", " "]
)
def test_the_words_of_an_error_take_time_in_proportion_to_their_length(word: str) -> None:
    def read_error(size: int) -> None:
        body = json.dumps({"error": {"message": word * 20 * size}}).encode()
        error_from_response("Peer", 400, {}, body, "secret-key")

    assert measure(lambda size: functools.partial(read_error, size)) <= MAX_GROWTH


def test_padding_behind_a_compressed_body_takes_time_in_proportion_to_its_length() -> None:
    def decode(size: int) -> None:
        chunks = [gzip.compress(b"data: {}\n\n"), *([b"\0" * 4000] * size)]
        assert b"".join(decode_chunks("Peer", "gzip", chunks)) == b"data: {}\n\n"

    assert measure(lambda size: functools.partial(decode, size)) <= MAX_GROWTH


MANY = b'{"a": [' + b"{}," * 300_000 + b"{}]}"
MANY_MEMBERS = {
    "a frame": b"data: " + MANY + b"\n\n",
    "a line without a name": MANY + b"\n",
    "no blank line behind it": b"data: " + MANY + b"\ndata: {}\n\n",
    "an event of an error": b"event: error\ndata: " + MANY + b"\n\n",
    "a body that is no stream": b" " + MANY,
    "a list": b"[" + b"{}," * 300_000 + b"{}]",
}


@pytest.mark.parametrize("name", sample_for_quick_suite(MANY_MEMBERS, every=3))
def test_more_members_than_any_answer_has_are_refused_before_they_take_their_memory(name: str) -> None:
    stream = MANY_MEMBERS[name]
    recording = RECORDINGS["openai-compatible"]
    tracemalloc.start()
    with pytest.raises(ProviderError):
        list(
            iter_parts(
                "Peer",
                ProviderResponse(200, {}, iter([stream])),
                recording.make_accumulator(),
                "",
                recording.make_decoder(),
            )
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(stream)
