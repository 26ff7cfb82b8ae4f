"""`fermata content`: list and show documents, export, import or delete a space, index its search."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.content_git import content_git
from fermata_client.commands.workspace.project_archive import (
    is_project_target,
    read_project_archive,
    write_project_archive,
)
from fermata_client.service.client import FermataClient
from fermata_client.service.content_client import IMPORTED_AT_ONCE
from fermata_client.service.errors import InvalidResponseError
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

MAX_IMPORTED_FILE_BYTES = 200_000_000
SPACE_ARGUMENT = click.argument("space", metavar="SITE[/ENVIRONMENT]")


@click.group()
def content() -> None:
    """List and show content, export, import or delete a space, index its search."""


content.add_command(content_git)


@content.command("list")
@click.argument("space", metavar="[SITE[/ENVIRONMENT]]", required=False)
@click.argument("model", required=False)
@json_option
@service_options
@report_errors
def list_content(space: str | None, model: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """List the spaces; the models of a space; or the documents of its MODEL."""
    with connect_to_service(url, token) as client:
        columns: tuple[str, ...]
        if space is None:
            found, columns = client.list_content_spaces(), ("site", "environment", "title", "domain")
        elif model is None:
            found, columns = client.list_content_models(space), ("id", "kind", "documents", "title")
        else:
            found = list(client.iter_content_documents(space, model))
            columns = ("id", "slug", "status", "updatedAt", "title")
    if as_json:
        print_json(found)
        return
    print_table(columns, [tuple(_show_cell(name, one.get(name)) for name in columns) for one in found])


def _show_cell(name: str, value: Any) -> str:
    return format_minute(value) or "" if name.endswith("At") and value else strip_control_chars(str(value or ""))[:60]


@content.command("show")
@SPACE_ARGUMENT
@click.argument("model")
@click.argument("document", metavar="ID|SLUG")
@service_options
@report_errors
def show_content(space: str, model: str, document: str, url: str | None, token: str | None) -> None:
    """Print a document as JSON."""
    with connect_to_service(url, token) as client:
        print_json(client.find_content_document(space, model, document))


@content.command("export")
@SPACE_ARGUMENT
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--html", "as_html", is_flag=True, help="Write published pages as HTML files to the folder TARGET.")
@click.option("--submissions", is_flag=True, help="Write what visitors have sent with forms to the JSON file TARGET.")
@service_options
@report_errors
def export_content(
    space: str, target: Path, as_html: bool, submissions: bool, url: str | None, token: str | None
) -> None:
    """Write a space to TARGET, which `fermata content import` reads: a JSON file, or files of the layout .contentrain/.

    TARGET is a folder or a ZIP archive for the latter.
    """
    if as_html and submissions:
        raise click.UsageError("Use --html or --submissions, not both.")
    if submissions:
        with connect_to_service(url, token) as client:
            click.echo(f"{target}: {_write_submissions(client, space, target)} submissions")
        return
    if not as_html and is_project_target(target):
        with connect_to_service(url, token) as client:
            try:
                files = client.export_project_files(space)
            except InvalidResponseError as error:
                raise CommandError(str(error)) from error
        write_project_archive(target, files)
        click.echo(f"{target}: {len(files)} files")
        return
    with connect_to_service(url, token) as client:
        count = _write_pages(client, space, target) if as_html else _write_export(client, space, target)
    click.echo(f"{target}: {count} {'pages' if as_html else 'documents'}")


def _write_export(client: FermataClient, space: str, target: Path) -> int:
    whole: dict[str, Any] = {}
    documents: list[Any] = []
    for part in client.iter_content_export(space, "json"):
        documents += part["documents"]
        whole |= {name: part[name] for name in ("version", "space", "models") if name in part}
    target.write_text(json.dumps(whole | {"documents": documents}, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return len(documents)


def _write_submissions(client: FermataClient, space: str, target: Path) -> int:
    submissions = [one for part in client.iter_content_export(space, "submissions") for one in part["submissions"]]
    target.write_text(json.dumps({"submissions": submissions}, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return len(submissions)


def _write_pages(client: FermataClient, space: str, target: Path) -> int:
    root, count = target.resolve(), 0
    for part in client.iter_content_export(space, "html"):
        for page in part["pages"]:
            path = (root / page["path"]).resolve()
            if not path.is_relative_to(root):
                raise click.ClickException(f"The service names a file outside of {target}: {page['path'][:100]!r}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page["html"], "utf-8")
            count += 1
    return count


@content.command("import")
@SPACE_ARGUMENT
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@service_options
@report_errors
def import_content(space: str, source: Path, url: str | None, token: str | None) -> None:
    """Import SOURCE. It may be repeated: what is there already stays as it is.

    SOURCE is a JSON file, or a folder or ZIP archive with .contentrain/. The latter is all that the space says
    afterwards: what it does not have is deleted, and can be restored.
    """
    if is_project_target(source):
        files = read_project_archive(source)
        with connect_to_service(url, token) as client:
            done = client.import_project_files(space, files)
        click.echo(f"{done['written']} written, {done['deleted']} deleted, {done['models']} models")
        return
    models, documents = _read_export(source)
    with connect_to_service(url, token) as client:
        counts = Counter(_import_in_parts(client, space, models, documents))
    click.echo(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "nothing to import")
    if counts["refused"]:
        raise SystemExit(1)


def _read_export(source: Path) -> tuple[list[Any], list[Any]]:
    """Return the models and the documents of a JSON file."""
    if source.stat().st_size > MAX_IMPORTED_FILE_BYTES:
        raise click.ClickException(f"{source} is larger than {MAX_IMPORTED_FILE_BYTES // 1_000_000} MB.")
    try:
        whole = json.loads(source.read_text("utf-8"))
        return list(whole.get("models", [])), list(whole.get("documents", []))
    except (ValueError, AttributeError, TypeError) as error:
        raise click.ClickException(f"{source} is no export of a space: {error}") from error


def _import_in_parts(client: FermataClient, space: str, models: list[Any], documents: list[Any]) -> Iterator[str]:
    """Send models and documents, and yield what became of each; say why one was refused."""
    for start in range(0, max(1, len(documents)), IMPORTED_AT_ONCE):
        part = documents[start : start + IMPORTED_AT_ONCE]
        for item in client.import_content(space, models if start == 0 else [], part):
            if item["outcome"] == "refused":
                place = strip_control_chars(f"{item['model']}/{item['id']}: {item.get('error', '')}")
                click.echo(f"refused {place}", err=True)
            yield item["outcome"]


@content.command("delete")
@SPACE_ARGUMENT
@click.confirmation_option(prompt="Delete this space with all its versions? It cannot be undone.", help="Do not ask.")
@service_options
@report_errors
def delete_content(space: str, url: str | None, token: str | None) -> None:
    """Delete a space: its documents with all versions, its images, tokens and index."""
    with connect_to_service(url, token) as client:
        job = client.delete_content_space(space)
    click.echo(f"{space}: it is found no more, and is erased within an hour (job {job['id']}).")


@content.command("reindex")
@SPACE_ARGUMENT
@click.option("--credential", metavar="ID", help="The credential of the model that turns texts into vectors.")
@click.option("--model", metavar="ID", help="That model, such as text-embedding-3-small.")
@click.option("--without-model", is_flag=True, help="Compare texts by their letters from now on.")
@click.option("--again", is_flag=True, help="Write also what is indexed as it is.")
@service_options
@report_errors
def reindex_content(
    space: str,
    credential: str | None,
    model: str | None,
    without_model: bool,
    again: bool,
    url: str | None,
    token: str | None,
) -> None:
    """Index a space for its search, with another model if one is named."""
    if bool(credential) != bool(model):
        raise click.UsageError("Name both --credential and --model.")
    seen = written = 0
    with connect_to_service(url, token) as client:
        if credential or without_model:
            client.set_search_model(space, credential, model)
        cursor, is_first = "", True
        while is_first or cursor:
            part = client.index_content_part(space, cursor, again=again)
            seen, written = seen + part["seen"], written + part["written"]
            cursor, is_first = part.get("cursor") or "", False
    click.echo(f"{seen} documents, {written} indexed")
