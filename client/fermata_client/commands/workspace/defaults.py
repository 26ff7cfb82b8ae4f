"""`fermata defaults`: show, set and clear the default model of a scope."""

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.terminal.table import print_table

SCOPE_ARGUMENT = click.argument("scope")


@group_with_default("show")
def defaults() -> None:
    """Show each scope's default model, set or clear one. Alone, it shows them."""


@defaults.command("show")
@json_option
@service_options
@report_errors
def show_defaults(as_json: bool, url: str | None, token: str | None) -> None:
    """Show the scopes and their default models."""
    with connect_to_service(url, token) as client:
        default_by_scope = client.get_defaults()
        scopes = [] if as_json else client.list_scopes()
    if as_json:
        print_json(default_by_scope)
        return
    defaults_by_row = [(scope, default_by_scope.get(scope, {})) for scope in scopes]
    rows = [(scope, default.get("modelId"), default.get("credentialId")) for scope, default in defaults_by_row]
    print_table(("scope", "model", "credential"), rows)


@defaults.command("set")
@SCOPE_ARGUMENT
@click.argument("credential_id", metavar="CREDENTIAL")
@click.argument("model_id", metavar="MODEL")
@service_options
@report_errors
def set_default(scope: str, credential_id: str, model_id: str, url: str | None, token: str | None) -> None:
    """Let SCOPE use MODEL with the credential CREDENTIAL, for everybody of the tenant."""
    with connect_to_service(url, token) as client:
        client.set_default(scope, credential_id, model_id)
    click.echo(f"{scope} uses {model_id}.")


@defaults.command("clear")
@SCOPE_ARGUMENT
@service_options
@report_errors
def clear_default(scope: str, url: str | None, token: str | None) -> None:
    """Let SCOPE have no default."""
    with connect_to_service(url, token) as client:
        client.clear_default(scope)
    click.echo(f"{scope} has no default.")
