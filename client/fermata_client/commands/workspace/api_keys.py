"""`fermata api-keys`: list, create, change, rotate and revoke the keys of a tenant's servers and programs."""

from typing import Any

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.conversation_key_rules import (
    add_rule_options,
    build_key_rules_body,
    describe_key_rules,
)
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

API_KEY_ID_ARGUMENT = click.argument("key_id", metavar="ID")
_SECONDS_PER_DAY = 86_400


@group_with_default("list", name="api-keys")
def api_keys() -> None:
    """List the keys of your servers, create, rotate or revoke one. Alone, it lists them."""


@api_keys.command("list")
@json_option
@service_options
@report_errors
def list_api_keys(as_json: bool, url: str | None, token: str | None) -> None:
    """List the tenant's keys without their secrets, the newest first."""
    with connect_to_service(url, token) as client:
        keys = client.list_api_keys()
    if as_json:
        print_json(keys)
        return
    rows = [
        (
            key["id"],
            _describe_state(key),
            format_minute(key["lastUsedAt"]),
            strip_control_chars(key["label"]),
            strip_control_chars(_describe_rights(key)),
            ", ".join(key["scopes"] or ["all"]),
        )
        for key in keys
    ]
    print_table(("id", "state", "used", "label", "may", "scopes"), rows)


def _describe_rights(key: JsonObject) -> str:
    rules = key.get("conversation")
    return describe_key_rules(rules) if rules else ", ".join(key["capabilities"])


def _describe_state(key: JsonObject) -> str:
    if key["revokedAt"]:
        return "revoked"
    return f"until {format_minute(key['expiresAt'])}" if key["expiresAt"] else "valid"


@api_keys.command("create")
@click.argument("label")
@click.option("--capability", "capabilities", multiple=True, help="What a server may do. Repeat for more.")
@click.option("--project", help="A content space, as site/environment: the key is one of the Conversation API.")
@click.option("--scope", "scopes", multiple=True, help="A scope it is for. Repeat for more.  [default: all]")
@click.option("--days", type=click.IntRange(min=1), help="Its lifetime.  [default: until it is revoked]")
@add_rule_options
@service_options
@report_errors
def create_api_key(
    label: str,
    capabilities: tuple[str, ...],
    project: str | None,
    scopes: tuple[str, ...],
    days: int | None,
    url: str | None,
    token: str | None,
    **rules: Any,
) -> None:
    """Create a key named LABEL. Its text is printed to standard output, and cannot be printed again.

    With --capability it is a server's key. With --project it is one of the Conversation API, and has rules.
    """
    conversation = build_key_rules_body(rules)
    if bool(capabilities) == bool(project) or (conversation and not project):
        raise click.UsageError("Give --capability for a server's key, or --project for one of the Conversation API.")
    with connect_to_service(url, token) as client:
        created = client.create_api_key(
            label,
            list(capabilities) or None,
            conversation={"project": project, **conversation} if project else None,
            scopes=list(scopes) or None,
            expires_in_seconds=None if days is None else days * _SECONDS_PER_DAY,
        )
    _print_key(created)


@api_keys.command("change")
@API_KEY_ID_ARGUMENT
@click.option("--label", help="What people call it.")
@add_rule_options
@service_options
@report_errors
def change_api_key(key_id: str, label: str | None, url: str | None, token: str | None, **rules: Any) -> None:
    """Change the key ID of the Conversation API. What is not given stays. Also a turn that runs follows it."""
    conversation = build_key_rules_body(rules)
    if label is None and not conversation:
        raise click.UsageError("Say what to change: --label, --role, --model, --tool, --locale, ...")
    with connect_to_service(url, token) as client:
        changed = client.change_api_key(key_id, label=label, conversation=conversation or None)
    click.echo(f"{key_id}: {strip_control_chars(_describe_rights(changed))}")


@api_keys.command("rotate")
@API_KEY_ID_ARGUMENT
@click.option(
    "--overlap", type=click.IntRange(min=0), help="Seconds during which the old secret stays valid.  [default: 86400]"
)
@service_options
@report_errors
def rotate_api_key(key_id: str, overlap: int | None, url: str | None, token: str | None) -> None:
    """Give the key ID a new secret, and print it once. --overlap 0 ends the old one at once."""
    with connect_to_service(url, token) as client:
        rotated = client.rotate_api_key(key_id, overlap_seconds=overlap)
    _print_key(rotated)


@api_keys.command("revoke")
@API_KEY_ID_ARGUMENT
@click.confirmation_option(prompt="Revoke this key?", help="Do not ask.")
@service_options
@report_errors
def revoke_api_key(key_id: str, url: str | None, token: str | None) -> None:
    """Revoke the key ID. It is refused everywhere within a minute."""
    with connect_to_service(url, token) as client:
        client.revoke_api_key(key_id)
    click.echo(f"{key_id} is revoked.")


def _print_key(created: JsonObject) -> None:
    """Print the key's text alone to standard output, so that it can be piped into a store of secrets."""
    click.echo(
        f"The key {created['apiKey']['id']}, shown only now. Store it where your server reads its secrets:", err=True
    )
    click.echo(created["key"])
