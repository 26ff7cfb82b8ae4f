"""Any value of any member leads to a storable response or to a provider error."""

import contextlib
import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelResponse, StreamPart
from fermata.drivers.registry import PROVIDER_MODULES
from fermata.drivers.transport.stream_decoders import NdjsonDecoder
from tests.unit.drivers import stream_helpers
from tests.unit.drivers.recorded_streams import RECORDINGS, Event, Recording

pytestmark = pytest.mark.exhaustive

DEEPLY_NESTED = json.loads("[" * 120 + "]" * 120)
LEFT_OUT = object()
NOTHING: tuple[Any, ...] = (LEFT_OUT, None, False, 0, "", [], {})
OTHERS: tuple[Any, ...] = (
    *NOTHING,
    *(True, -1, 3, 1.5, 1e400, "x", "7", "half \ud83d", DEEPLY_NESTED),
    *([1], ["x"], [None], [{}], [[]], {"a": 1}, {"type": None}, {"message": 5}, {"half \ud83d": "\ude00"}),
)

Path = tuple[Any, ...]


def iter_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of a value's members, its own first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield from iter_paths(member, (*path, name))


def replace_at_path(event: Event, path: Path, other: Any) -> Any:
    if not path:
        return other
    copied = copy.deepcopy(event)
    target: Any = copied
    for name in path[:-1]:
        target = target[name]
    if other is LEFT_OUT:
        del target[path[-1]]
    else:
        target[path[-1]] = other
    return copied


def collect_parts(recording: Recording, events: Sequence[Any]) -> list[StreamPart]:
    frame = "{}\n" if recording.make_decoder is NdjsonDecoder else "data: {}\n\n"
    stream = "".join(frame.format(json.dumps(event)) for event in events).encode()
    return stream_helpers.collect_parts(recording.make_accumulator(), [stream], recording.make_decoder())


def test_every_provider_has_a_recording() -> None:
    assert set(RECORDINGS) == set(PROVIDER_MODULES)


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_recording_is_a_complete_response(provider: str) -> None:
    reply = stream_helpers.get_response(collect_parts(RECORDINGS[provider], RECORDINGS[provider].events))
    assert [block.kind for block in reply.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert any(block.kind == "reasoning" for block in reply.blocks)
    assert reply.tokens_known


@pytest.mark.parametrize("provider", RECORDINGS)
def test_any_member_may_have_any_value(provider: str) -> None:
    recording = RECORDINGS[provider]
    for number, event in enumerate(recording.events):
        for path in iter_paths(event):
            for other in OTHERS:
                if path or other is not LEFT_OUT:
                    hurt = replace_at_path(event, path, other)
                    check_survives(recording, [*recording.events[:number], hurt, *recording.events[number + 1 :]])


def check_survives(recording: Recording, events: Sequence[Any]) -> None:
    parts: list[StreamPart] = []
    with contextlib.suppress(ProviderError):
        parts = collect_parts(recording, events)
        assert isinstance(parts[-1], ModelResponse)
    for part in parts:
        value = part.to_wire() if isinstance(part, ModelResponse) else part.text
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("provider", RECORDINGS)
def test_unknown_events_and_comments_are_ignored(provider: str) -> None:
    recording = RECORDINGS[provider]
    plain = collect_parts(recording, recording.events)
    unknown: list[Event] = [{"type": "of.tomorrow", "anything": 1}, {"type": None}, {}]
    mixed = [item for event in recording.events[:-1] for item in (*unknown, event)]
    assert collect_parts(recording, [*mixed, recording.events[-1]]) == plain
