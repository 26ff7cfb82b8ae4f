"""`fermata credentials`: list, add, test, change and delete the keys of providers.

A key is read from the environment or from standard input, never from arguments, which other processes can see.
"""

import os
import sys

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

CREDENTIAL_ID_ARGUMENT = click.argument("credential_id", metavar="ID")
KEY_ENV_OPTION = click.option(
    "--key-env", metavar="NAME", help="Read the key from this environment variable, not from stdin."
)


@group_with_default("list")
def credentials() -> None:
    """List your providers' keys, add, test, change or delete one. Alone, it lists them. Keys are never shown."""


@credentials.command("list")
@json_option
@service_options
@report_errors
def list_credentials(as_json: bool, url: str | None, token: str | None) -> None:
    """List the credentials you entered, the newest first."""
    with connect_to_service(url, token) as client:
        own = client.list_credentials()
    if as_json:
        print_json(own)
        return
    rows = [
        (
            credential["id"],
            credential["providerId"],
            _key_state(credential),
            format_minute(credential["lastUsedAt"]),
            credential["displayLabel"],
            credential["baseUrl"],
        )
        for credential in own
    ]
    print_table(("id", "provider", "key", "used", "label", "address"), rows)


def _key_state(credential: JsonObject) -> str:
    return "sealed" if credential["keyFingerprintCurrent"] else "enter again"


@credentials.command("add")
@click.argument("provider")
@click.option("--label", required=True, help="What to call it.")
@click.option("--base-url", metavar="URL", help="The address of a server of your own, or of a gateway.")
@click.option("--no-key", is_flag=True, help="The server at --base-url needs no key.")
@KEY_ENV_OPTION
@service_options
@report_errors
def add_credential(
    provider: str,
    label: str,
    base_url: str | None,
    no_key: bool,
    key_env: str | None,
    url: str | None,
    token: str | None,
) -> None:
    """Enter a key for PROVIDER, such as anthropic or ollama; for an unknown name, the service lists the known ones.

    The key is read from standard input, unseen when it is typed. Scopes without a default get one from it.
    """
    if no_key and not base_url:
        raise CommandError("Without a key there must be an address: name it with --base-url.")
    key = None if no_key else read_key(key_env)
    with connect_to_service(url, token) as client:
        created = client.create_credential(provider, label, api_key=key, base_url=base_url)
    click.echo(created["id"])
    click.echo(f"Try it with: {suggest_command('credentials test', str(created['id']), url=url)}", err=True)


@credentials.command("change")
@CREDENTIAL_ID_ARGUMENT
@click.option("--label", help="Call it this.")
@click.option("--base-url", metavar="URL", help="Its server's new address.")
@click.option("--new-key", is_flag=True, help="Read a new key from standard input.")
@KEY_ENV_OPTION
@service_options
@report_errors
def change_credential(
    credential_id: str,
    label: str | None,
    base_url: str | None,
    new_key: bool,
    key_env: str | None,
    url: str | None,
    token: str | None,
) -> None:
    """Change the credential ID. Turns that run use a new key within five minutes."""
    key = read_key(key_env) if new_key or key_env else None
    if label is None and base_url is None and key is None:
        raise CommandError("Give what to change: --label, --base-url, --new-key or --key-env.")
    with connect_to_service(url, token) as client:
        changed = client.update_credential(credential_id, label=label, api_key=key, base_url=base_url)
    click.echo(f"{credential_id} is changed: {strip_control_chars(changed['displayLabel'])}")


@credentials.command("test")
@CREDENTIAL_ID_ARGUMENT
@service_options
@report_errors
def test_credential(credential_id: str, url: str | None, token: str | None) -> None:
    """Ask the provider of the credential ID which models it opens."""
    with connect_to_service(url, token) as client:
        result = client.test_credential(credential_id)
    if not result["ok"]:
        raise CommandError(f"It does not work: {result['error']}")
    count = result["modelCount"]
    click.echo(f"It works, and opens {count:,} model{'' if count == 1 else 's'}.")


@credentials.command("delete")
@CREDENTIAL_ID_ARGUMENT
@click.confirmation_option(prompt="Delete this credential?", help="Do not ask.")
@service_options
@report_errors
def delete_credential(credential_id: str, url: str | None, token: str | None) -> None:
    """Delete the credential ID. It stays while it is a scope's default."""
    with connect_to_service(url, token) as client:
        client.delete_credential(credential_id)
    click.echo(f"{credential_id} is deleted.")


def read_key(variable: str | None, advice: str = "") -> str:
    """Read a key from an environment variable, or without one from the terminal or standard input.

    Args:
        variable: Its name, if there is one.
        advice: What else a user may do who has no key.

    Raises:
        CommandError: There is no key.
    """
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise CommandError(f"The environment variable {variable} is not set, or empty.")
        return key
    if sys.stdin.isatty():
        return str(click.prompt("Key", hide_input=True, err=True)).strip()
    key = sys.stdin.read().strip()
    if not key:
        missing = "Standard input holds no key. Send it there, or name its variable with --key-env."
        raise CommandError(f"{missing} {advice}".rstrip())
    return key
