"""`fermata undo`: take back what a turn did to an HTML file."""

from pathlib import Path
from typing import Any

import click

from fermata_client.commands.common import Failure, conclude, one_sentence, service
from fermata_client.file_executor import HtmlFileExecutor
from fermata_client.html_file import HtmlFile
from fermata_client.outcome import Outcome
from fermata_client.screen import Screen, plain
from fermata_client.turn import undo_turn


@click.command()
@click.argument("bridge")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--through", metavar="EFFECT_KEY", help="Go back to this edit of the turn and no further.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the undo as the last line.")
@click.option("--url", metavar="URL", help="Where the service is. Left out: FERMATA_URL, or what `make run` wrote.")
@click.option("--token", metavar="TOKEN", help="Who you are. Left out: FERMATA_TOKEN, or what `make run` wrote.")
@one_sentence
def undo(bridge: str, file: Path, through: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Take back what the turn BRIDGE did to an HTML FILE, and show what changed.

    `fermata edit` tells the turn's bridge when it is done. What somebody else has changed since then stays as it is.
    """
    page = HtmlFile(file)
    before = page.texts(file.name)
    executor, screen = HtmlFileExecutor(page), Screen()
    try:
        with service(url, token) as client:
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
        screen.show_changes(before, page.texts(file.name))
    report = _told(outcome, screen)
    conclude(outcome, screen, as_json=as_json)
    if report["skipped"] and not report["undone"]:
        raise Failure("Nothing was taken back.")


def _told(outcome: Outcome, screen: Screen) -> dict[str, Any]:
    report: dict[str, Any] = outcome.view.report or {"undone": [], "skipped": []}
    for skipped in report["skipped"]:
        screen.line(f"  ! {skipped['effectKey']} stays: {plain(str(skipped['reason']))}", fg="yellow")
    screen.line(f"{len(report['undone'])} taken back, {len(report['skipped'])} left as they are.")
    return report
