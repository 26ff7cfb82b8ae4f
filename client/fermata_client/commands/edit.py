"""`fermata edit`: let the model work on an HTML file."""

import shlex
from pathlib import Path

import click

from fermata_client.commands.common import connect_to_service, report_errors, report_outcome, turn_options
from fermata_client.document.html_file import HtmlFile, NotAnHtmlFileError, check_output_path
from fermata_client.terminal.screen import TurnPrinter
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.runner import run_turn


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("prompt")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write here and leave FILE as it is.")
@click.option("--css", metavar="FILE", help="The style sheet of the page that gets new rules. Left out: its last one.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the turn as the last line.")
@turn_options
@report_errors
def edit(
    file: Path,
    prompt: str,
    out: Path | None,
    css: str | None,
    as_json: bool,
    url: str | None,
    token: str | None,
    model: str | None,
) -> None:
    """Edit an HTML FILE as PROMPT asks, and show what changed.

    Style sheets and scripts that FILE loads from its own folder are edited along with it.
    """
    page = _open(file, out, css)
    before = page.file_texts((out or file).name)
    executor = HtmlFileExecutor(page)
    screen = TurnPrinter()
    try:
        with connect_to_service(url, token) as client:
            outcome = run_turn(
                client,
                "site",
                prompt,
                executor=executor,
                snapshot=executor.snapshot,
                revision=executor.revision,
                on_event=screen,
                model=model,
            )
        page.write_copy()
    finally:
        screen.end_line()
        after = page.file_texts((out or file).name)
        screen.print_changes(before, after)
    if before != after and not as_json:
        click.echo(
            f"Take it back with: fermata undo {outcome.view.bridge_id} {shlex.quote(str(out or file))}", err=True
        )
    report_outcome(outcome, screen, as_json=as_json)


def _open(file: Path, out: Path | None, css: str | None) -> HtmlFile:
    if out is None and file.exists() and not file.stat().st_mode & 0o222:
        raise NotAnHtmlFileError(f"{file} is read-only. Make it writable, or write elsewhere with --out.")
    if out is not None:
        check_output_path(out.resolve())
    return HtmlFile(file, out, css or "")
