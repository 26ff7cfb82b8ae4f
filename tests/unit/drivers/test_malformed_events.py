"""Whatever a server puts in the place of a member, the fold ends with a reply that can be stored, or with its error."""

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

DEEPLY_NESTED = json.loads("[" * 120 + "]" * 120)
LEFT_OUT = object()
NOTHING = (LEFT_OUT, None, False, 0, "", [], {})
OTHERS: tuple[Any, ...] = (
    *NOTHING,
    *(True, -1, 3, 1.5, 1e400, "x", "7", "half \ud83d", DEEPLY_NESTED),
    *([1], ["x"], [None], [{}], [[]], {"a": 1}, {"type": None}, {"message": 5}, {"half \ud83d": "\ude00"}),
)

Path = tuple[Any, ...]


def iter_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where everything in it stands, itself first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield from iter_paths(member, (*path, name))


def replace_at_path(event: Event, path: Path, other: Any) -> Any:
    if not path:
        return other
    copied = copy.deepcopy(event)
    place: Any = copied
    for name in path[:-1]:
        place = place[name]
    if other is LEFT_OUT:
        del place[path[-1]]
    else:
        place[path[-1]] = other
    return copied


def collect_pieces(recording: Recording, events: Sequence[Any]) -> list[StreamPart]:
    frame = "{}\n" if recording.make_decoder is NdjsonDecoder else "data: {}\n\n"
    stream = "".join(frame.format(json.dumps(event)) for event in events).encode()
    return stream_helpers.collect_pieces(recording.make_accumulator(), [stream], recording.make_decoder())


def test_every_provider_has_a_recording() -> None:
    assert set(RECORDINGS) == set(PROVIDER_MODULES)


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_recording_is_a_whole_answer(provider: str) -> None:
    reply = stream_helpers.get_response(collect_pieces(RECORDINGS[provider], RECORDINGS[provider].events))
    assert [block.kind for block in reply.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert any(block.kind == "reasoning" for block in reply.blocks)
    assert reply.tokens_known


@pytest.mark.parametrize("provider", RECORDINGS)
def test_any_member_may_be_anything(provider: str) -> None:
    recording = RECORDINGS[provider]
    for number, event in enumerate(recording.events):
        for path in iter_paths(event):
            for other in OTHERS:
                if path or other is not LEFT_OUT:
                    hurt = replace_at_path(event, path, other)
                    check_survives(recording, [*recording.events[:number], hurt, *recording.events[number + 1 :]])


def check_survives(recording: Recording, events: Sequence[Any]) -> None:
    pieces: list[StreamPart] = []
    with contextlib.suppress(ProviderError):
        pieces = collect_pieces(recording, events)
        assert isinstance(pieces[-1], ModelResponse)
    for piece in pieces:
        json.dumps(piece.to_wire(), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("provider", RECORDINGS)
def test_unknown_events_and_comments_in_between_change_nothing(provider: str) -> None:
    recording = RECORDINGS[provider]
    plain = collect_pieces(recording, recording.events)
    unknown: list[Event] = [{"type": "of.tomorrow", "anything": 1}, {"type": None}, {}]
    mixed = [one for event in recording.events[:-1] for one in (*unknown, event)]
    assert collect_pieces(recording, [*mixed, recording.events[-1]]) == plain
