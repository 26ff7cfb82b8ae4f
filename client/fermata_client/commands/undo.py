"""`fermata undo`: take back what a turn did to an HTML file."""

from pathlib import Path
from typing import Any

import click

from fermata_client.commands.common import CommandError, connect_to_service, report_errors, report_outcome
from fermata_client.document.html_file import HtmlFile
from fermata_client.terminal.screen import TurnPrinter, strip_control_chars
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import undo_turn


@click.command()
@click.argument("bridge")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--through", metavar="EFFECT_KEY", help="Go back to this edit of the turn and no further.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the undo as the last line.")
@click.option("--url", metavar="URL", help="Where the service is. Left out: FERMATA_URL, or what `make run` wrote.")
@click.option("--token", metavar="TOKEN", help="Who you are. Left out: FERMATA_TOKEN, or what `make run` wrote.")
@report_errors
def undo(bridge: str, file: Path, through: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Take back what the turn BRIDGE did to an HTML FILE, and show what changed.

    `fermata edit` tells the turn's bridge when it is done. What somebody else has changed since then stays as it is.
    """
    page = HtmlFile(file)
    before = page.file_texts(file.name)
    executor, screen = HtmlFileExecutor(page), TurnPrinter()
    try:
        with connect_to_service(url, token) as client:
            outcome = undo_turn(
                client,
                bridge,
                through=through,
                executor=executor,
                snapshot=executor.snapshot,
                revision=executor.revision,
                on_event=screen,
            )
    finally:
        screen.end_line()
        screen.print_changes(before, page.file_texts(file.name))
    report = _told(outcome, screen)
    report_outcome(outcome, screen, as_json=as_json)
    if report["skipped"] and not report["undone"]:
        raise CommandError("Nothing was taken back.")


def _told(outcome: TurnOutcome, screen: TurnPrinter) -> dict[str, Any]:
    report: dict[str, Any] = outcome.view.undo_report or {"undone": [], "skipped": []}
    for skipped in report["skipped"]:
        screen.print_line(
            f"  ! {skipped['effectKey']} stays: {strip_control_chars(str(skipped['reason']))}", fg="yellow"
        )
    screen.print_line(f"{len(report['undone'])} taken back, {len(report['skipped'])} left as they are.")
    return report
