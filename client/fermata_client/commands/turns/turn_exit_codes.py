"""Set the exit code of a command by the outcome of its turn, and say what went wrong."""

import json

import click

from fermata_client.commands.common.errors import CommandError, raise_stopped
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.turns.outcome import TurnOutcome

EXIT_CODE_NOTHING_CHANGED = 3


def report_outcome(
    outcome: TurnOutcome, printer: TurnPrinter, *, as_json: bool, changed: list[str] | None = None
) -> None:
    """Print the summary of a turn and its answer if `as_json`, and fail the command unless the turn is done.

    Args:
        changed: the files that the turn has changed; None for a turn that changes none.
    """
    printer.end_line()
    if as_json:
        members: JsonObject = {"text": outcome.view.text} | ({} if changed is None else {"changed": changed})
        click.echo(json.dumps(outcome.to_summary() | members, ensure_ascii=False))
    if outcome.is_interrupted:
        raise_stopped()
    if outcome.status == "error":
        raise _reported_error(f"The turn ended with an error: {outcome.error}", as_json=as_json)
    if outcome.status != "done":
        raise _reported_error(f"The turn was {outcome.status}.", as_json=as_json)
    if changed == []:
        click.echo("fermata: nothing was changed.", err=True)
        raise click.exceptions.Exit(EXIT_CODE_NOTHING_CHANGED)


def _reported_error(text: str, *, as_json: bool) -> CommandError:
    error = CommandError(text)
    error.is_in_output = as_json
    return error
