"""`fermata edit`: let a model edit an HTML file."""

from pathlib import Path

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.options import check_prompt, turn_json_option, turn_options
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.turns.model_credential import find_credential_of_model
from fermata_client.commands.turns.turn_exit_codes import report_outcome
from fermata_client.document.disk_files import NotAnHtmlFileError, check_output_path, resolve_path
from fermata_client.document.html_file import HtmlFile
from fermata_client.service.client import FermataClient
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.tools.executor import HtmlFileExecutor
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import run_turn

SCOPE = "site"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("prompt")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file and leave FILE unchanged."
)
@click.option(
    "--css",
    metavar="FILE",
    help="The style sheet of the page that gets new rules.  [default: the last of the site itself]",
)
@turn_json_option
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

    Exit codes: 0 changed, 1 failed, 2 wrong usage, 3 nothing changed, 130 stopped.

    Style sheets and scripts that FILE loads from its own folder are edited along with it.
    """
    check_prompt(prompt)
    html_file = _open_html_file(file, out, css)
    name = (out or file).name
    at_start = html_file.file_texts(name)
    printer = TurnPrinter(to_stderr=as_json)
    try:
        with printer, connect_to_service(url, token) as client:
            credential = find_credential_of_model(client, SCOPE, model, url)
            outcome = _run_edit(client, html_file, prompt, (credential, model), printer)
        html_file.write_copy()
    finally:
        before, after = html_file.texts_before_edits(name, at_start), html_file.file_texts(name)
        printer.print_changes(before, after)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed and not as_json:
        hint = suggest_command("undo", str(outcome.view.bridge_id), str(out or file), url=url)
        click.echo(f"Undo it with: {hint}", err=True)
    report_outcome(outcome, printer, as_json=as_json, changed=changed)


def _run_edit(
    client: FermataClient,
    html_file: HtmlFile,
    prompt: str,
    credential_and_model: tuple[str | None, str | None],
    printer: TurnPrinter,
) -> TurnOutcome:
    credential, model = credential_and_model
    executor = HtmlFileExecutor(html_file)
    return run_turn(
        client,
        SCOPE,
        prompt,
        executor=executor,
        snapshot=executor.snapshot,
        revision=executor.revision,
        on_event=printer,
        model=model,
        credential=credential,
    )


def _open_html_file(file: Path, out: Path | None, css: str | None) -> HtmlFile:
    if out is None and file.exists() and not file.stat().st_mode & 0o222:
        raise NotAnHtmlFileError(f"{file} is read-only. Make it writable, or write elsewhere with --out.")
    if out is not None:
        check_output_path(resolve_path(out))
    return HtmlFile(file, out, css or "")
