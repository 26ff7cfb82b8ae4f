"""`fermata content git`: connect a space to a Git repository, pull and push it, see what waits."""

from typing import Any

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.credentials import read_key
from fermata_client.terminal.plain_text import strip_control_chars

_SPACE = click.argument("space", metavar="SITE[/ENVIRONMENT]")
_PREFER = click.option(
    "--prefer", type=click.Choice(["ours", "theirs"]), help="Whose values count; theirs are the repository's."
)


@click.group("git")
def content_git() -> None:
    """Connect a space to a Git repository, pull and push it, see what waits."""


@content_git.command("connect")
@_SPACE
@click.argument("address")
@click.option("--branch", default="main", show_default=True, help="The branch to pull and push.")
@click.option("--root", default="", help="The folder of the project in the repository.")
@click.option("--username", default="", help="Who the password is for; it is asked for then.")
@click.option("--password-env", metavar="NAME", help="The environment variable with the password.")
@click.option("--keep-password", is_flag=True, help="Keep the password of the same address and user.")
@service_options
@report_errors
def connect_git(
    space: str,
    address: str,
    branch: str,
    root: str,
    username: str,
    password_env: str | None,
    keep_password: bool,
    url: str | None,
    token: str | None,
) -> None:
    """Say that the Git repository at ADDRESS belongs to a space."""
    body = {"url": address, "branch": branch, "root": root, "username": username}
    if (username or password_env) and not keep_password:
        body["password"] = read_key(password_env)
    with connect_to_service(url, token) as client:
        client.connect_git_repository(space, body)
    click.echo(f"{space} is connected to {strip_control_chars(address)}.")


@content_git.command("disconnect")
@_SPACE
@service_options
@report_errors
def disconnect_git(space: str, url: str | None, token: str | None) -> None:
    """Forget the repository of a space, and its password. Content stays."""
    with connect_to_service(url, token) as client:
        client.disconnect_git_repository(space)
    click.echo(f"{space} is not connected to a repository.")


@content_git.command("status")
@_SPACE
@json_option
@service_options
@report_errors
def show_git_status(space: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the repository of a space, and what a pull and a push would do."""
    with connect_to_service(url, token) as client:
        repository = client.show_git_repository(space)
        status = client.check_git_repository(space) if repository else {}
    if as_json:
        print_json({"repository": repository, **status})
        return
    if not repository:
        raise CommandError(f"{space} is not connected to a Git repository. fermata content git connect does it.")
    click.echo(strip_control_chars(f"{repository['url']} {repository['branch']} {repository['root']}".strip()))
    click.echo(f"{status['incoming']} changes to pull, {status['outgoing']} files to push")
    for line in _describe_conflicts(status["conflicts"]):
        click.echo(line)


def _describe_conflicts(conflicts: list[Any]) -> list[str]:
    return [
        strip_control_chars(f"conflict {one['model']}/{one['id']} {field.get('field', '')}")
        for one in conflicts
        for field in one["fields"]
    ]


@content_git.command("pull")
@_SPACE
@_PREFER
@service_options
@report_errors
def pull_git(space: str, prefer: str | None, url: str | None, token: str | None) -> None:
    """Merge the newest commit of the repository into the space."""
    with connect_to_service(url, token) as client:
        _show_sync(client.pull_git_repository(space, prefer))


@content_git.command("push")
@_SPACE
@_PREFER
@click.option("--message", default="", help="What the commit says.")
@service_options
@report_errors
def push_git(space: str, prefer: str | None, message: str, url: str | None, token: str | None) -> None:
    """Merge what others have committed, then commit what the space says."""
    with connect_to_service(url, token) as client:
        _show_sync(client.push_git_repository(space, prefer, message))


def _show_sync(summary: dict[str, Any]) -> None:
    click.echo(f"{summary['pulled']} changes pulled, {summary['pushed']} files pushed, at {summary['commit'][:12]}")
    for path in summary["ignored"]:
        click.echo(f"ignored {strip_control_chars(path)}", err=True)
