"""Whatever a server puts in the place of a member, the fold ends with a reply that can be stored, or with its error."""

import contextlib
import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fermata.drivers.driver import PROVIDERS
from fermata.drivers.sse import Lines
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, Reply
from tests.unit.drivers import hearing
from tests.unit.drivers.recordings import RECORDINGS, Event, Recording

DEEP = json.loads("[" * 120 + "]" * 120)
LEFT_OUT = object()
NOTHING = (LEFT_OUT, None, False, 0, "", [], {})
OTHERS: tuple[Any, ...] = (
    *NOTHING,
    *(True, -1, 3, 1.5, 1e400, "x", "7", "half \ud83d", DEEP),
    *([1], ["x"], [None], [{}], [[]], {"a": 1}, {"type": None}, {"message": 5}, {"half \ud83d": "\ude00"}),
)

Path = tuple[Any, ...]


def members(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where everything in it stands, itself first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield from members(member, (*path, name))


def changed(event: Event, path: Path, other: Any) -> Any:
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


def heard(recording: Recording, events: Sequence[Any]) -> list[Piece]:
    frame = "{}\n" if recording.stream is Lines else "data: {}\n\n"
    stream = "".join(frame.format(json.dumps(event)) for event in events).encode()
    return hearing.heard(recording.draft(), [stream], recording.stream())


def test_every_provider_has_a_recording() -> None:
    assert set(RECORDINGS) == set(PROVIDERS)


@pytest.mark.parametrize("provider", RECORDINGS)
def test_a_recording_is_a_whole_answer(provider: str) -> None:
    reply = hearing.last(heard(RECORDINGS[provider], RECORDINGS[provider].events))
    assert [block.kind for block in reply.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert any(block.kind == "reasoning" for block in reply.blocks)
    assert reply.tokens_known


@pytest.mark.parametrize("provider", RECORDINGS)
def test_any_member_may_be_anything(provider: str) -> None:
    recording = RECORDINGS[provider]
    for number, event in enumerate(recording.events):
        for path in members(event):
            for other in OTHERS:
                if path or other is not LEFT_OUT:
                    hurt = changed(event, path, other)
                    survives(recording, [*recording.events[:number], hurt, *recording.events[number + 1 :]])


def survives(recording: Recording, events: Sequence[Any]) -> None:
    pieces: list[Piece] = []
    with contextlib.suppress(ProviderError):
        pieces = heard(recording, events)
        assert isinstance(pieces[-1], Reply)
    for piece in pieces:
        json.dumps(piece.wire(), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("provider", RECORDINGS)
def test_unknown_events_and_comments_in_between_change_nothing(provider: str) -> None:
    recording = RECORDINGS[provider]
    plain = heard(recording, recording.events)
    unknown: list[Event] = [{"type": "of.tomorrow", "anything": 1}, {"type": None}, {}]
    mixed = [one for event in recording.events[:-1] for one in (*unknown, event)]
    assert heard(recording, [*mixed, recording.events[-1]]) == plain
