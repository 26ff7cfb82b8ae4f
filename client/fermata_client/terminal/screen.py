"""A turn on a terminal: text as it comes, each tool as a line."""

import json
import re
import sys
from typing import Any

import click

from fermata_client.service.json_types import Event
from fermata_client.terminal.diff import colorize_line, should_use_color, unified_diff_lines
from fermata_client.turns.view import TurnView

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MAX_INPUT_CHARS = 64


class TurnPrinter:
    """Listens to a turn. What a model says cannot move the cursor or colour the screen."""

    def __init__(self, *, color: bool | None = None) -> None:
        self.color = should_use_color(sys.stdout, color)
        self._in_line = False

    def __call__(self, event: Event, view: TurnView) -> None:
        match event.get("type"):
            case "text":
                self._say(strip_control_chars(str(event.get("text", ""))))
            case "toolCall":
                name, given = strip_control_chars(str(event.get("toolName"))), summarize_input(event.get("input"))
                self.print_line(f"  → {name} {given}".rstrip(), fg="cyan")
            case "toolResult" if event.get("ok"):
                self.print_line(f"  ✓ {strip_control_chars(str(event.get('toolName')))}", fg="green")
            case "toolResult":
                name = strip_control_chars(str(event.get("toolName")))
                error = strip_control_chars(str(event.get("error", "failed")))
                self.print_line(f"  ✗ {name}: {error}", fg="red")
            case "roundRetracted":
                self.print_line("  ↺ the connection to the model broke; it starts this answer again", fg="yellow")
            case "warning":
                self.print_line(f"  ! {strip_control_chars(str(event.get('message', '')))}", fg="yellow")
            case "held":
                self.print_line("  … waiting for somebody to decide", fg="yellow")
            case "done" | "error" | "cancelled":
                self.end_line()

    def print_line(self, text: str, **style: Any) -> None:
        self.end_line()
        click.echo(click.style(text, **style) if self.color else text, color=self.color)

    def end_line(self) -> None:
        if self._in_line:
            click.echo()
            self._in_line = False

    def print_diff(self, before: str, after: str, name: str) -> None:
        for line in map(strip_control_chars, unified_diff_lines(before, after, name)):
            click.echo(colorize_line(line) if self.color else line, color=self.color)

    def print_changes(self, before: dict[str, str], after: dict[str, str]) -> None:
        """The difference of several files, by name, in the order of their first."""
        for name in {**before, **after}:
            self.print_diff(before.get(name, ""), after.get(name, ""), name)

    def _say(self, text: str) -> None:
        if text:
            click.echo(text, nl=False)
            self._in_line = not text.endswith("\n")


def strip_control_chars(text: str) -> str:
    return _CONTROL.sub("", text)


def summarize_input(given: Any) -> str:
    """A tool's input in a few characters: short values as they are, long ones by their size."""
    if not isinstance(given, dict):
        return ""
    return strip_control_chars(" ".join(f"{name}={_value(value)}" for name, value in given.items()))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_INPUT_CHARS and "\n" not in text:
        return text
    lines = text.count("\n") + 1
    return f"({len(text)} characters)" if lines == 1 else f"({lines} lines)"
