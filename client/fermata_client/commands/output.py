"""Print the result of a command, and set its exit code."""

import json
from typing import Any

import click

from fermata_client.commands.errors import CommandError
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.turns.outcome import TurnOutcome

EXIT_CODE_INTERRUPTED = 130


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def report_outcome(outcome: TurnOutcome, printer: TurnPrinter, *, as_json: bool) -> None:
    """Print the summary of a turn if `as_json`, and fail the command unless the turn is done."""
    printer.end_line()
    if as_json:
        click.echo(json.dumps(outcome.to_summary(), ensure_ascii=False))
    if outcome.is_interrupted:
        click.echo("fermata: stopped.", err=True)
        raise click.exceptions.Exit(EXIT_CODE_INTERRUPTED)
    if outcome.status == "error":
        raise CommandError(f"The turn ended with an error: {outcome.error}")
    if outcome.status != "done":
        raise CommandError(f"The turn was {outcome.status}.")
