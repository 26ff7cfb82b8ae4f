"""`fermata models`: list the models that the caller's credentials open."""

import click

from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.client import FermataClient
from fermata_client.service.errors import RequestRefusedError
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import print_table

CAPABILITY_LABELS = {"toolCalling": "tools", "visionInput": "images", "promptCache": "cache"}


@click.command()
@click.option("--credential", "credential_id", metavar="ID", help="Only those that this credential opens.")
@click.option("--provider", metavar="NAME", help="Whose credential it is, when you may not list credentials.")
@json_option
@service_options
@report_errors
def models(credential_id: str | None, provider: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """List the models your credentials open, with list prices in USD per million tokens."""
    if provider and not credential_id:
        raise CommandError("Name the credential as well, with --credential.")
    with connect_to_service(url, token) as client:
        listed = _list_models(client, _select_credentials(client, credential_id, provider))
    if as_json:
        print_json(listed)
        return
    print_table(("provider", "model", "tier", "window", "in", "out", "can"), [_table_row(model) for model in listed])


def _select_credentials(
    client: FermataClient, credential_id: str | None, provider: str | None
) -> list[tuple[str, str]]:
    """Return pairs of provider and credential to list models for."""
    if provider and credential_id:
        return [(provider, credential_id)]
    own = [(str(credential["providerId"]), str(credential["id"])) for credential in client.list_credentials()]
    selected = [pair for pair in own if credential_id in (None, pair[1])]
    if credential_id and not selected:
        raise CommandError(f"You have entered no credential {credential_id}. Name its provider with --provider.")
    if not selected:
        hint = suggest_command("credentials add", "anthropic", label="Anthropic")
        raise CommandError(f"You have entered no credential yet. Add one with: {hint}")
    return selected


def _list_models(client: FermataClient, credentials: list[tuple[str, str]]) -> list[JsonObject]:
    """List the models of several credentials. A provider that fails is reported, and the others are listed."""
    listed: list[JsonObject] = []
    for provider, credential_id in credentials:
        try:
            models_of_credential = client.list_models(provider, credential_id)
        except RequestRefusedError as error:
            if len(credentials) == 1:
                raise
            click.echo(f"fermata: {strip_control_chars(error.error)} ({credential_id})", err=True)
        else:
            origin = {"providerId": provider, "credentialId": credential_id}
            listed += [model | origin for model in models_of_credential]
    return listed


def _table_row(model: JsonObject) -> tuple[object, ...]:
    price = model.get("pricing") or {}
    return (
        model["providerId"],
        model["id"],
        model.get("tier"),
        model.get("contextWindow"),
        _format_usd(price.get("inputPerMTok")),
        _format_usd(price.get("outputPerMTok")),
        " ".join(label for name, label in CAPABILITY_LABELS.items() if model["capabilities"].get(name)),
    )


def _format_usd(price: float | None) -> str | None:
    return None if price is None else f"{price:g}"
