"""The line that shows for how long nothing has come."""

from io import StringIO

import pytest

from fermata_client.terminal.waiting_line import WaitingLine


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class ManualClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn_at(line: WaitingLine, clock: ManualClock, stream: StringIO, seconds: float) -> str:
    stream.truncate(0)
    stream.seek(0)
    clock.now = seconds
    line.draw()
    return stream.getvalue()


def test_it_counts_the_seconds_without_output_after_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(), ManualClock()
    line = WaitingLine(stream, clock)
    assert drawn_at(line, clock, stream, 0.9) == ""
    assert " 1 s\x1b[K\x1b8" in drawn_at(line, clock, stream, 1.0)
    assert " 12 s\x1b[K\x1b8" in drawn_at(line, clock, stream, 12.3)
    line.restart()
    assert stream.getvalue().endswith("\x1b7\x1b[K\x1b8")
    assert drawn_at(line, clock, stream, 13.2) == ""
    assert " 1 s" in drawn_at(line, clock, stream, 13.3)


@pytest.mark.parametrize(("stream", "terminal_type"), [(StringIO(), "xterm"), (Terminal(), "dumb")])
def test_only_a_terminal_gets_one(stream: StringIO, terminal_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", terminal_type)
    clock = ManualClock()
    line = WaitingLine(stream, clock)
    line.start()
    assert drawn_at(line, clock, stream, 5.0) == ""
    line.stop()
    assert stream.getvalue() == ""
