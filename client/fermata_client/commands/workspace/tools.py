"""`fermata tools`: list, register, change and remove the remote tools of a tenant."""

import json
from collections.abc import Callable
from pathlib import Path

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.credentials import KEY_ENV_OPTION, read_key
from fermata_client.service.errors import RequestRefusedError
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

TOOL_NAME_ARGUMENT = click.argument("name", metavar="NAME")


@group_with_default("list", name="tools")
def tools() -> None:
    """List the remote tools of your workspace, register, change or remove one. Alone, it lists them."""


@tools.command("list")
@json_option
@service_options
@report_errors
def list_remote_tools(as_json: bool, url: str | None, token: str | None) -> None:
    """List the remote tools, by name."""
    with connect_to_service(url, token) as client:
        found = client.list_remote_tools()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            strip_control_chars(tool["manifest"]["name"]),
            "on" if tool["manifest"]["enabled"] else "off",
            tool["manifest"]["capability"],
            tool["source"],
            ", ".join(tool["scopes"]) or "all",
            format_minute(tool["updatedAt"]),
            strip_control_chars(tool["endpoint"]),
        )
        for tool in found
    ]
    print_table(("name", "state", "capability", "source", "scopes", "changed", "endpoint"), rows)


@tools.command("register")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace tools of the same names.")
@service_options
@report_errors
def register_remote_tools(file: Path, replace: bool, url: str | None, token: str | None) -> None:
    """Register the tools of FILE: one registration as JSON, or {"tools": [...]}.

    Each new signing secret is printed to standard output, and cannot be printed again. A tool that is refused does
    not keep the others from being registered.
    """
    entries = _read_entries(file)
    failures = 0
    with connect_to_service(url, token) as client:
        for entry in entries:
            failures += not _register(client.register_remote_tool, entry, replace=replace)
    if failures:
        raise click.exceptions.Exit(1)


def _read_entries(file: Path) -> list[JsonObject]:
    try:
        value = json.loads(file.read_text())
    except ValueError as error:
        raise click.ClickException(f"{file} is no JSON: {error}") from error
    entries = value.get("tools", [value]) if isinstance(value, dict) else value
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise click.ClickException(f"{file} holds no registration of a tool.")
    return entries


def _register(register: Callable[[JsonObject], JsonObject], entry: JsonObject, *, replace: bool) -> bool:
    name = str(entry.get("manifest", {}).get("name", "?")) if isinstance(entry.get("manifest"), dict) else "?"
    try:
        stored = register(entry | ({"replace": True} if replace else {}))
    except RequestRefusedError as error:
        click.echo(f"{strip_control_chars(name)}: {error}", err=True)
        return False
    _print_secret(stored)
    return True


@tools.command("turn-on")
@TOOL_NAME_ARGUMENT
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="What the tool needs. Repeat for more.")
@click.option("--no-key", is_flag=True, help="The tool needs no key.")
@KEY_ENV_OPTION
@service_options
@report_errors
def turn_on_built_in_tool(
    name: str, options: tuple[str, ...], no_key: bool, key_env: str | None, url: str | None, token: str | None
) -> None:
    """Turn the built-in tool NAME on, such as unsplash.search, or replace its key."""
    pairs = [option.partition("=") for option in options]
    if any(not sign for _, sign, _ in pairs):
        raise click.UsageError("--option needs NAME=VALUE.")
    key = None if no_key else read_key(key_env, "Without a key: --no-key.")
    with connect_to_service(url, token) as client:
        client.turn_on_built_in_tool(name, api_key=key, options={option: value for option, _, value in pairs})
    click.echo(f"{strip_control_chars(name)} is on.")


@tools.command("enable")
@TOOL_NAME_ARGUMENT
@service_options
@report_errors
def enable_remote_tool(name: str, url: str | None, token: str | None) -> None:
    """Offer the tool NAME to turns again."""
    with connect_to_service(url, token) as client:
        client.change_remote_tool(name, {"enabled": True})
    click.echo(f"{name} is on.")


@tools.command("disable")
@TOOL_NAME_ARGUMENT
@service_options
@report_errors
def disable_remote_tool(name: str, url: str | None, token: str | None) -> None:
    """Offer the tool NAME to no turn any more."""
    with connect_to_service(url, token) as client:
        client.change_remote_tool(name, {"enabled": False})
    click.echo(f"{name} is off.")


@tools.command("rotate-secret")
@TOOL_NAME_ARGUMENT
@service_options
@report_errors
def rotate_tool_secret(name: str, url: str | None, token: str | None) -> None:
    """Give the tool NAME a new signing secret, and print it once. Requests carry both signatures from now on."""
    with connect_to_service(url, token) as client:
        _print_secret(client.change_remote_tool(name, {"rotateSigningSecret": True}))


@tools.command("remove")
@TOOL_NAME_ARGUMENT
@click.confirmation_option(prompt="Remove this tool?", help="Do not ask.")
@service_options
@report_errors
def remove_remote_tool(name: str, url: str | None, token: str | None) -> None:
    """Remove the tool NAME. Turns that run may not call it any more."""
    with connect_to_service(url, token) as client:
        client.remove_remote_tool(name)
    click.echo(f"{name} is removed.")


def _print_secret(stored: JsonObject) -> None:
    """Print a new secret alone to standard output, so that it can be piped into a store of secrets."""
    name = strip_control_chars(stored["tool"]["manifest"]["name"])
    if "signingSecret" in stored:
        click.echo(f"{name}: its signing secret, shown only now. Give it to the tool's server:", err=True)
        click.echo(stored["signingSecret"])
    else:
        click.echo(f"{name} is registered, with the signing secret that it has.", err=True)
