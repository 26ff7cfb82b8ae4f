"""`fermata privacy`: export or erase the data of a conversation, a user or a tenant."""

import os
from pathlib import Path

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_anyway_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.deployment.stack_options import stack_options
from fermata_client.service.json_members import without_none
from fermata_client.stack.resources import StackLocation, find_local_stack, open_stack_resources

JOB_ID_ARGUMENT = click.argument("job_id", metavar="ID")
CONVERSATION_OPTION = click.option("--conversation", metavar="ID", help="The data of one conversation.")
USER_OPTION = click.option("--user", metavar="ID", help="That of a user, by the `sub` of the user's tokens.")
TENANT_OPTION = click.option("--tenant", metavar="NAME", help="That of your whole tenant.")


@click.group()
def privacy() -> None:
    """Export or erase what is stored of a conversation, a user or a tenant. It begins within five minutes."""


@privacy.command("export")
@CONVERSATION_OPTION
@USER_OPTION
@TENANT_OPTION
@service_options
@report_errors
def start_export(
    conversation: str | None, user: str | None, tenant: str | None, url: str | None, token: str | None
) -> None:
    """Export data, and print the id of the export."""
    _start("exports", conversation, user, tenant, url, token)


@privacy.command("erase")
@CONVERSATION_OPTION
@USER_OPTION
@TENANT_OPTION
@click.confirmation_option(prompt="Erase this data? It cannot be undone.", help="Do not ask.")
@service_options
@report_errors
def start_erasure(
    conversation: str | None, user: str | None, tenant: str | None, url: str | None, token: str | None
) -> None:
    """Erase data, and print the id of the erasure. Turns that run are cancelled."""
    _start("erasures", conversation, user, tenant, url, token)


@privacy.command("export-status")
@JOB_ID_ARGUMENT
@json_anyway_option
@service_options
@report_errors
def show_export(job_id: str, url: str | None, token: str | None) -> None:
    """Print the state of the export ID, and the URLs of its files when it is done."""
    with connect_to_service(url, token) as client:
        print_json(client.show_privacy_job("exports", job_id))


@privacy.command("download")
@JOB_ID_ARGUMENT
@click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write to."
)
@service_options
@report_errors
def download_export(job_id: str, folder: Path, url: str | None, token: str | None) -> None:
    """Download the files of the export ID into a folder that only you can read."""
    with connect_to_service(url, token) as client:
        job = client.show_privacy_job("exports", job_id)
        if "downloads" not in job:
            raise CommandError(_explain_missing_files(str(job["state"]), str(job.get("deletedBecause"))))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number, address in enumerate(job["downloads"], 1):
            part = folder / f"part-{number:04d}.ndjson.gz"
            _write_private_file(part, client.download_export_file(address))
            click.echo(part)


@privacy.command("erase-status")
@JOB_ID_ARGUMENT
@json_anyway_option
@service_options
@report_errors
def show_erasure(job_id: str, url: str | None, token: str | None) -> None:
    """Print the progress of the erasure ID, or its receipt."""
    with connect_to_service(url, token) as client:
        print_json(client.show_privacy_job("erasures", job_id))


@privacy.command("run")
@stack_options
def run_jobs(stack: str | None, region: str | None) -> None:
    """Do now what is open in a deployment, without the time limit of its functions. An operator's command."""
    from fermata.privacy.run_jobs import run_open_jobs

    location = StackLocation(stack, region) if stack else find_local_stack(region) or StackLocation(None, region)
    count = run_open_jobs(open_stack_resources(location), includes_postponed_exports=True)
    click.echo(f"{count} open job{'' if count == 1 else 's'} gone on with.")


_DELETED = {
    "age": "The files of this export were deleted a day after it was done. Start another one.",
    "erasure": "The files of this export were deleted, because data was erased that was or may have been in them. "
    "Start another one for what is left.",
}
_DELETED_UNKNOWN = "The files of this export were deleted, by age or by an erasure. Start another one."


def _explain_missing_files(state: str, deleted_because: str) -> str:
    if state == "expired":
        return _DELETED.get(deleted_because, _DELETED_UNKNOWN)
    return f"The export is not done yet ({state}). It begins within five minutes; ask again then."


def _write_private_file(file: Path, content: bytes) -> None:
    """Write a file that only the user can read, in place of one of the same name."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)


def _start(
    kind: str, conversation: str | None, user: str | None, tenant: str | None, url: str | None, token: str | None
) -> None:
    subject = without_none({"conversationId": conversation, "userId": user, "tenant": tenant})
    if len(subject) != 1:
        raise CommandError("Give one of --conversation, --user and --tenant.")
    with connect_to_service(url, token) as client:
        click.echo(client.start_privacy_job(kind, subject)["id"])
