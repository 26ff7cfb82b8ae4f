"""`fermata defaults`: the model that a scope's conversations use when they name none."""

import click

from fermata_client.commands.common import (
    SCOPES,
    connect_to_service,
    json_option,
    print_json,
    report_errors,
    service_options,
)
from fermata_client.terminal.table import print_table

SCOPE_ARGUMENT = click.argument("scope", type=click.Choice(SCOPES))


@click.group(invoke_without_command=True)
@click.pass_context
def defaults(context: click.Context) -> None:
    """Show each scope's default model, set or clear one. Alone, it shows them."""
    if context.invoked_subcommand is None:
        context.invoke(show)


@defaults.command()
@json_option
@service_options
@report_errors
def show(as_json: bool, url: str | None, token: str | None) -> None:
    """Show the scopes and their default models."""
    with connect_to_service(url, token) as client:
        found = client.get_defaults()
    if as_json:
        print_json(found)
        return
    rows = [(scope, *(found.get(scope, {}).get(name) for name in ("modelId", "credentialId"))) for scope in SCOPES]
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


@defaults.command()
@SCOPE_ARGUMENT
@service_options
@report_errors
def clear(scope: str, url: str | None, token: str | None) -> None:
    """Let SCOPE have no default."""
    with connect_to_service(url, token) as client:
        client.clear_default(scope)
    click.echo(f"{scope} has no default.")
