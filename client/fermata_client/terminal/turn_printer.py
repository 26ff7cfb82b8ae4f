"""Print a running turn on a terminal: text as it comes, each tool call as a line."""

import sys
from typing import Self

import click

from fermata_client.service.json_types import Event
from fermata_client.terminal.diff import colorize_line, should_use_color, unified_diff_lines
from fermata_client.terminal.plain_text import strip_control_chars, summarize_input
from fermata_client.terminal.waiting_line import WaitingLine
from fermata_client.turns.event_reducer import TurnView


class TurnPrinter:
    """Event listener that prints a turn. Output of a model cannot move the cursor or colour the screen.

    As a context manager it also shows, on a terminal, for how long nothing has come.

    Args:
        color: None decides by the environment.
        to_stderr: print there, because stdout is for a program.
    """

    def __init__(self, *, color: bool | None = None, to_stderr: bool = False) -> None:
        self.color = should_use_color(sys.stderr if to_stderr else sys.stdout, color)
        self._to_stderr = to_stderr
        self._is_in_line = False
        self._waiting_line = WaitingLine(sys.stderr)

    def __enter__(self) -> Self:
        self._waiting_line.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting_line.stop()
        self.end_line()

    def __call__(self, event: Event, view: TurnView) -> None:
        match event.get("type"):
            case "text":
                self._print_text(_member_text(event, "text"))
            case "toolCall":
                name = _member_text(event, "toolName")
                self.print_line(f"  → {name} {summarize_input(event.get('input'))}".rstrip(), fg="cyan")
            case "toolResult" if event.get("ok"):
                self.print_line(f"  ✓ {_member_text(event, 'toolName')}", fg="green")
            case "toolResult":
                error = _member_text(event, "error", "failed")
                self.print_line(f"  ✗ {_member_text(event, 'toolName')}: {error}", fg="red")
            case "roundRetracted":
                self.print_line("  ↺ the connection to the model was lost; this answer starts again", fg="yellow")
            case "logRewound":
                self.print_line("  ↺ the service was restored from an older copy; the turn is shown again", fg="yellow")
            case "warning":
                self.print_line(f"  ! {_member_text(event, 'message')}", fg="yellow")
            case "held":
                self.print_line("  … waiting for a person to decide", fg="yellow")
            case "done" | "error" | "cancelled":
                self.end_line()

    def print_line(self, text: str, fg: str | None = None) -> None:
        """Print a line of its own, in the colour `fg` where the terminal has colours."""
        self.end_line()
        self._echo(click.style(text, fg=fg) if self.color else text)

    def end_line(self) -> None:
        """End the line that streamed text is on, if any."""
        if self._is_in_line:
            self._echo("")
            self._is_in_line = False

    def print_diff(self, before: str, after: str, name: str) -> None:
        for line in map(strip_control_chars, unified_diff_lines(before, after, name)):
            self._echo(colorize_line(line) if self.color else line)

    def print_changes(self, before: dict[str, str], after: dict[str, str]) -> None:
        """Print the diffs of several files, given by name."""
        for name in {**before, **after}:
            self.print_diff(before.get(name, ""), after.get(name, ""), name)

    def _print_text(self, text: str) -> None:
        if text:
            self._echo(text, newline=False)
            self._is_in_line = not text.endswith("\n")

    def _echo(self, text: str, *, newline: bool = True) -> None:
        self._waiting_line.restart()
        click.echo(text, nl=newline, err=self._to_stderr, color=self.color)


def _member_text(event: Event, name: str, default: str = "") -> str:
    return strip_control_chars(str(event.get(name, default)))
