"""`fermata policy`: show which calls need a person, and set it from a file."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_anyway_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.terminal.plain_text import strip_control_chars

_READ_ONLY_MEMBERS = ("updatedAt", "updatedBy", "warnings")
"""Members of the answer that are not of the policy itself. A file that was written from it may have them."""


@group_with_default("show", name="policy")
def policy() -> None:
    """Show which calls need a person, or set it. Alone, it shows it."""


@policy.command("show")
@json_anyway_option
@service_options
@report_errors
def show_policy(url: str | None, token: str | None) -> None:
    """Print the policy as JSON, as `fermata policy set` reads it."""
    with connect_to_service(url, token) as client:
        print_json(client.get_approval_policy())


@policy.command("set")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, allow_dash=True))
@service_options
@report_errors
def set_policy(file: str, url: str | None, token: str | None) -> None:
    """Replace the whole policy by that of FILE (- for standard input), for turns that start from now on.

    A rule may name a tool, a toolset or an agent that comes later. What its names are of nothing now is said.
    """
    wanted = _read_policy(file)
    with connect_to_service(url, token) as client:
        stored = client.set_approval_policy(wanted)
    for warning in stored.get("warnings", ()):
        click.echo(strip_control_chars(f"Warning: {warning}"), err=True)
    count = len(stored["rules"])
    click.echo(f"The policy has {count} rule{'' if count == 1 else 's'}. It applies to turns that start from now on.")


def _read_policy(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        value = json.loads(text)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"FILE cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.UsageError("FILE has to hold a JSON object.")
    return {name: member for name, member in value.items() if name not in _READ_ONLY_MEMBERS}
