"""Rows on a terminal: columns as wide as what stands in them. What a server says cannot move the cursor."""

from collections.abc import Sequence

import click

from fermata_client.terminal.screen import strip_control_chars

COLUMN_GAP = "  "


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [headings, *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        click.echo(COLUMN_GAP.join(padded).rstrip())


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    return strip_control_chars(f"{value:,}" if isinstance(value, int) else str(value)).replace("\n", " ")


def format_minute(instant: str | None) -> str | None:
    """An ISO instant to the minute: 2026-11-28 09:30."""
    return instant[:16].replace("T", " ") if instant else None
