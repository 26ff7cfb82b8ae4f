"""The line that shows for how long nothing has come."""

import os
import pty
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest

from fermata_client.terminal.waiting_line import WaitingLine
from tests.client.commands.run_command import PAGE, editing_turn
from tests.client.scripted_service import ServiceScript, serve_script


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


def read_terminal(descriptor: int, until: bytes = b"") -> bytes:
    """Read what a program writes to its terminal, until a text comes or the program ends."""
    output = b""
    while not (until and until in output):
        try:
            output += os.read(descriptor, 4096)
        except OSError:  # the program has ended
            break
    return output


def test_a_command_on_a_terminal_shows_it_until_something_comes(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    gate = threading.Event()
    program = "from fermata_client.cli import main; main()"
    ours, theirs = pty.openpty()
    with serve_script(ServiceScript(editing_turn(), gates={3: gate})) as url:
        command = [sys.executable, "-c", program, "edit", "page.html", "x", "--url", url, "--token", "good"]
        environment = os.environ | {"TERM": "xterm"}
        with subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment) as process:
            os.close(theirs)
            waiting = read_terminal(ours, b" 1 s")
            gate.set()
            rest = read_terminal(ours)
        os.close(ours)
    assert process.returncode == 0
    assert b" 1 s" in waiting
    assert b"\x1b7\x1b[K\x1b8I add two paragraphs." in rest or b"I add two paragraphs." in waiting
    assert b"Undo it with: fermata undo" in rest
