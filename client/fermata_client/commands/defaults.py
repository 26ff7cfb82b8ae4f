"""`fermata defaults`: the model that a scope's conversations use when they name none."""

import click

from fermata_client.commands.common import SCOPES, json_option, one_sentence, print_json, service, service_options
from fermata_client.commands.listing import show_rows

SCOPE = click.argument("scope", type=click.Choice(SCOPES))


@click.group(invoke_without_command=True)
@click.pass_context
def defaults(context: click.Context) -> None:
    """Show each scope's default model, set or clear one. Alone, it shows them."""
    if context.invoked_subcommand is None:
        context.invoke(show)


@defaults.command()
@json_option
@service_options
@one_sentence
def show(as_json: bool, url: str | None, token: str | None) -> None:
    """Show the scopes and their default models."""
    with service(url, token) as client:
        found = client.defaults()
    if as_json:
        print_json(found)
        return
    rows = [(scope, *(found.get(scope, {}).get(name) for name in ("modelId", "credentialId"))) for scope in SCOPES]
    show_rows(("scope", "model", "credential"), rows)


@defaults.command("set")
@SCOPE
@click.argument("credential_id", metavar="CREDENTIAL")
@click.argument("model_id", metavar="MODEL")
@service_options
@one_sentence
def set_default(scope: str, credential_id: str, model_id: str, url: str | None, token: str | None) -> None:
    """Let SCOPE use MODEL with the credential CREDENTIAL, for everybody of the tenant."""
    with service(url, token) as client:
        client.set_default(scope, credential_id, model_id)
    click.echo(f"{scope} uses {model_id}.")


@defaults.command()
@SCOPE
@service_options
@one_sentence
def clear(scope: str, url: str | None, token: str | None) -> None:
    """Let SCOPE have no default."""
    with service(url, token) as client:
        client.clear_default(scope)
    click.echo(f"{scope} has no default.")
