"""`fermata models`: what the keys open."""

from typing import Any

import click

from fermata_client.commands.common import (
    CommandError,
    connect_to_service,
    json_option,
    print_json,
    report_errors,
    service_options,
)
from fermata_client.service.client import FermataClient
from fermata_client.service.errors import RequestRefusedError
from fermata_client.terminal.screen import strip_control_chars
from fermata_client.terminal.table import print_table

Json = dict[str, Any]
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
        found = _found(client, _wanted(client, credential_id, provider))
    if as_json:
        print_json(found)
        return
    print_table(("provider", "model", "tier", "window", "in", "out", "can"), [_row(model) for model in found])


def _wanted(client: FermataClient, credential_id: str | None, provider: str | None) -> list[tuple[str, str]]:
    """Providers, and the credentials for them."""
    if provider and credential_id:
        return [(provider, credential_id)]
    own = [(str(one["providerId"]), str(one["id"])) for one in client.list_credentials()]
    wanted = [pair for pair in own if credential_id in (None, pair[1])]
    if credential_id and not wanted:
        raise CommandError(f"You have entered no credential {credential_id}. Name its provider with --provider.")
    if not wanted:
        raise CommandError("You have entered no credential yet. Begin with: fermata credentials add")
    return wanted


def _found(client: FermataClient, wanted: list[tuple[str, str]]) -> list[Json]:
    """One of several providers that does not answer keeps nobody from seeing the others' models."""
    found: list[Json] = []
    for provider, credential in wanted:
        try:
            told = client.list_models(provider, credential)
        except RequestRefusedError as refusal:
            if len(wanted) == 1:
                raise
            click.echo(f"fermata: {strip_control_chars(refusal.error)} ({credential})", err=True)
        else:
            found += [model | {"providerId": provider, "credentialId": credential} for model in told]
    return found


def _row(model: Json) -> tuple[object, ...]:
    price, abilities = model.get("pricing") or {}, model["capabilities"]
    return (
        model["providerId"],
        model["id"],
        model.get("tier"),
        model.get("contextWindow"),
        _usd(price.get("inputPerMTok")),
        _usd(price.get("outputPerMTok")),
        " ".join(word for name, word in CAPABILITY_LABELS.items() if abilities.get(name)),
    )


def _usd(price: float | None) -> str | None:
    return None if price is None else f"{price:g}"
