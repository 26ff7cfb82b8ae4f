"""`fermata undo`: undo the edits that a turn made to an HTML file."""

from pathlib import Path

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.options import service_options, turn_json_option
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.turns.turn_exit_codes import report_outcome
from fermata_client.document.html_file import HtmlFile
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import undo_turn


@click.command()
@click.argument("bridge")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--through", metavar="EFFECT_KEY", help="Go back to this edit of the turn and no further.")
@turn_json_option
@service_options
@report_errors
def undo(bridge: str, file: Path, through: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Undo the edits that the turn BRIDGE made to an HTML FILE, and show what changed.

    `fermata edit` prints the turn's bridge when it is done. Later changes by others are kept.
    """
    html_file = HtmlFile(file)
    at_start = html_file.file_texts(file.name)
    executor = HtmlFileExecutor(html_file)
    printer = TurnPrinter(to_stderr=as_json)
    try:
        with printer, connect_to_service(url, token) as client:
            client.get_bridge(bridge)  # a service that does not run is said at once; the turn itself retries
            outcome = undo_turn(
                client,
                bridge,
                through=through,
                executor=executor,
                snapshot=executor.snapshot,
                revision=executor.revision,
                on_event=printer,
            )
    finally:
        printer.print_changes(html_file.texts_before_edits(file.name, at_start), html_file.file_texts(file.name))
    report = _print_report(outcome, printer)
    report_outcome(outcome, printer, as_json=as_json)
    if report["skipped"] and not report["undone"]:
        error = CommandError("Nothing was undone.")
        error.is_in_output = as_json
        raise error


def _print_report(outcome: TurnOutcome, printer: TurnPrinter) -> JsonObject:
    report: JsonObject = outcome.view.undo_report or {"undone": [], "skipped": []}
    for skipped in report["skipped"]:
        printer.print_line(
            f"  ! {skipped['effectKey']} stays: {strip_control_chars(str(skipped['reason']))}", fg="yellow"
        )
    printer.print_line(f"{len(report['undone'])} undone, {len(report['skipped'])} left unchanged.")
    return report
