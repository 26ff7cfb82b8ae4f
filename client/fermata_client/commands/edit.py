"""`fermata edit`: let a model edit an HTML file."""

import shlex
from pathlib import Path

import click

from fermata_client.commands.errors import report_errors
from fermata_client.commands.options import turn_options
from fermata_client.commands.output import report_outcome
from fermata_client.commands.program_name import get_program
from fermata_client.commands.service_connection import connect_to_service
from fermata_client.document.disk_files import NotAnHtmlFileError, check_output_path
from fermata_client.document.html_file import HtmlFile
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.runner import run_turn


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("prompt")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file and leave FILE unchanged."
)
@click.option("--css", metavar="FILE", help="The style sheet of the page that gets new rules.  [default: the last one]")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the turn as JSON in the last line.")
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
    html_file = _open_html_file(file, out, css)
    before = html_file.file_texts((out or file).name)
    executor = HtmlFileExecutor(html_file)
    printer = TurnPrinter()
    try:
        with connect_to_service(url, token) as client:
            outcome = run_turn(
                client,
                "site",
                prompt,
                executor=executor,
                snapshot=executor.snapshot,
                revision=executor.revision,
                on_event=printer,
                model=model,
            )
        html_file.write_copy()
    finally:
        printer.end_line()
        after = html_file.file_texts((out or file).name)
        printer.print_changes(before, after)
    if before != after and not as_json:
        changed_file = shlex.quote(str(out or file))
        click.echo(f"Undo it with: {get_program()} undo {outcome.view.bridge_id} {changed_file}", err=True)
    report_outcome(outcome, printer, as_json=as_json)


def _open_html_file(file: Path, out: Path | None, css: str | None) -> HtmlFile:
    if out is None and file.exists() and not file.stat().st_mode & 0o222:
        raise NotAnHtmlFileError(f"{file} is read-only. Make it writable, or write elsewhere with --out.")
    if out is not None:
        check_output_path(out.resolve())
    return HtmlFile(file, out, css or "")
