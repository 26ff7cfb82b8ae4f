"""Check how often streamed text is appended."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.events import TextEvent
from fermata.turns.round.stream_writer import StreamWriter
from tests.resources import TestClock


class SlowLog:
    """A log whose appends take time."""

    def __init__(self, clock: TestClock, append_seconds: float) -> None:
        self._clock = clock
        self._append_seconds = append_seconds
        self.append_count = 0

    def append(self, write: object) -> None:
        self._clock.advance(self._append_seconds)
        self.append_count += 1


@pytest.mark.parametrize(
    ("append_seconds", "append_count"),
    [
        (0.001, 28),  # an append every 250 ms for two seconds, then every 400 (decision 0180)
        (0.1, 12),  # every 900 ms: 100 ms, and eight times as long until the next
        (1.0, 6),  # every 2 s: a second, and no more than a second until the next
    ],
)
def test_text_is_appended_less_often_while_appends_take_long(
    shared_resources: Resources, clock: TestClock, append_seconds: float, append_count: int
) -> None:
    log: Any = SlowLog(clock, append_seconds)
    unused: Any = None
    resources = Resources(shared_resources.settings, clock)
    writer = StreamWriter(resources, log, unused, unused)
    end = clock.monotonic() + 10
    while clock.monotonic() < end:
        writer.write(TextEvent(text="x"))
        clock.advance(0.001)
    assert log.append_count == pytest.approx(append_count, abs=1)
