"""`fermata connect`: save the address and token of a service for all later commands."""

import sys
from getpass import getpass

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.connection_files import CONNECTED_FILE_NAME, user_connection_file, write_connection_file
from fermata_client.service.connection_settings import clean_url


@click.command()
@click.argument("url")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="FERMATA_TOKEN",
    help="The token to save.  [default: FERMATA_TOKEN, asked for, or read from stdin]",
)
@report_errors
def connect(url: str, token: str | None) -> None:
    """Save the address URL of a service and your token, so that later commands need neither.

    They are saved in your own state folder, in a file that only you can read.
    """
    url = clean_url(url)
    token = token or _read_token()
    with connect_to_service(url, token) as client:
        client.list_conversations("site", limit=1)
        file = user_connection_file(CONNECTED_FILE_NAME)
        write_connection_file(file, {"url": client.url, "token": token.strip()})
    click.echo(f"Connected to {client.url}. Saved in {file}.")


def _read_token() -> str:
    token = getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        raise CommandError("There is no token. Give one with --token, or on stdin.")
    return token
