"""Print rows as a table whose columns are as wide as their widest cell."""

from collections.abc import Sequence

import click

from fermata_client.terminal.plain_text import strip_control_chars

COLUMN_GAP = "  "


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table. Control characters in cells are removed, so that a server cannot move the cursor."""
    lines = [headings, *([_format_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        click.echo(COLUMN_GAP.join(padded).rstrip())


def _format_cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    return strip_control_chars(f"{value:,}" if isinstance(value, int) else str(value)).replace("\n", " ")


def format_minute(instant: str | None) -> str | None:
    """Shorten an ISO instant to the minute, as in `2026-11-28 09:30`."""
    return instant[:16].replace("T", " ") if instant else None
