"""`fermata secrets`: enter, list and remove the secrets that agents name."""

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.credentials import KEY_ENV_OPTION, read_key
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table


@group_with_default("list", name="secrets")
def secrets() -> None:
    """List the secrets that your agents can name as {_secret: NAME}; set or remove one. Alone, it lists them."""


@secrets.command("list")
@json_option
@service_options
@report_errors
def list_secrets(as_json: bool, url: str | None, token: str | None) -> None:
    """List the names of the secrets. Their values are never shown."""
    with connect_to_service(url, token) as client:
        found = client.list_secrets()
    if as_json:
        print_json(found)
        return
    rows = [(one["name"], format_minute(one["updatedAt"]), strip_control_chars(one["updatedBy"])) for one in found]
    print_table(("name", "changed", "by"), rows)


@secrets.command("set")
@click.argument("name", metavar="NAME")
@KEY_ENV_OPTION
@service_options
@report_errors
def set_secret(name: str, key_env: str | None, url: str | None, token: str | None) -> None:
    """Enter the secret NAME, or replace it. Its value is read from standard input, or asked for."""
    value = read_key(key_env)
    with connect_to_service(url, token) as client:
        client.set_secret(name, value)
    click.echo(f"{strip_control_chars(name)} is set.")


@secrets.command("remove")
@click.argument("name", metavar="NAME")
@click.confirmation_option(prompt="Remove this secret?", help="Do not ask.")
@service_options
@report_errors
def remove_secret(name: str, url: str | None, token: str | None) -> None:
    """Remove the secret NAME. Agents that name it fail from then on."""
    with connect_to_service(url, token) as client:
        client.remove_secret(name)
    click.echo(f"{strip_control_chars(name)} is removed.")
