"""`fermata edit`: let the model work on an HTML file."""

import shlex
from pathlib import Path

import click

from fermata_client.commands.common import conclude, connection_options, one_sentence, service
from fermata_client.file_executor import HtmlFileExecutor
from fermata_client.html_file import HtmlFile, NotAPage, check_writable
from fermata_client.screen import Screen
from fermata_client.turn import run_turn


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("prompt")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write here and leave FILE as it is.")
@click.option("--css", metavar="FILE", help="The style sheet of the page that gets new rules. Left out: its last one.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of the turn as the last line.")
@connection_options
@one_sentence
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
    before = page.texts((out or file).name)
    executor = HtmlFileExecutor(page)
    screen = Screen()
    try:
        with service(url, token) as client:
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
        page.finish()
    finally:
        screen.end_line()
        after = page.texts((out or file).name)
        screen.show_changes(before, after)
    if before != after and not as_json:
        click.echo(
            f"Take it back with: fermata undo {outcome.view.bridge_id} {shlex.quote(str(out or file))}", err=True
        )
    conclude(outcome, screen, as_json=as_json)


def _open(file: Path, out: Path | None, css: str | None) -> HtmlFile:
    if out is None and file.exists() and not file.stat().st_mode & 0o222:
        raise NotAPage(f"{file} is read-only. Make it writable, or write elsewhere with --out.")
    if out is not None:
        check_writable(out.resolve())
    return HtmlFile(file, out, css or "")
