"""`fermata approvals`: list the tool calls that wait for a person, show one, approve or deny it."""

import json
from typing import Any

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

APPROVAL_ID_ARGUMENT = click.argument("approval_id", metavar="ID")


@group_with_default("list", name="approvals")
def approvals() -> None:
    """List the calls and plans that wait for a person, show, approve or deny one. Alone, it lists them."""


@approvals.command("list")
@json_option
@service_options
@report_errors
def list_approvals(as_json: bool, url: str | None, token: str | None) -> None:
    """List the calls that wait for a decision, the oldest first."""
    found: list[JsonObject] = []
    with connect_to_service(url, token) as client:
        cursor: str | None = ""
        while cursor is not None:
            page = client.list_approvals(cursor=cursor or None)
            found += page["approvals"]
            cursor = page.get("nextCursor")
    if as_json:
        print_json(found)
        return
    rows = [
        (
            approval["approvalId"],
            strip_control_chars(approval["toolName"]),
            approval["risk"],
            ", ".join(approval["reasons"]),
            strip_control_chars(approval["userId"]),
            format_minute(approval["requestedAt"]),
            format_minute(approval["deadline"]),
        )
        for approval in found
    ]
    print_table(("id", "tool", "risk", "why", "user", "since", "until"), rows)


@approvals.command("history")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many decisions.")
@json_option
@service_options
@report_errors
def list_decisions(limit: int, as_json: bool, url: str | None, token: str | None) -> None:
    """List what was decided last, the newest first."""
    with connect_to_service(url, token) as client:
        found = client.list_decisions(limit=limit)["decisions"]
    if as_json:
        print_json(found)
        return
    rows = [
        (
            format_minute(decision["at"]),
            decision["outcome"],
            strip_control_chars(decision["tool"]),
            strip_control_chars(decision.get("askedFor", "")),
            strip_control_chars(decision.get("decidedBy", "")),
            strip_control_chars(decision.get("reason", "")),
        )
        for decision in found
    ]
    print_table(("at", "outcome", "tool", "asked for", "decided by", "reason"), rows)


@approvals.command("show")
@APPROVAL_ID_ARGUMENT
@json_option
@service_options
@report_errors
def show_approval(approval_id: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the call ID: what it would do, and its whole input."""
    with connect_to_service(url, token) as client:
        approval = client.get_approval(approval_id)
    if as_json:
        print_json(approval)
        return
    click.echo(f"{strip_control_chars(approval['toolName'])}: {approval['state']}")
    click.echo(strip_control_chars(approval["description"]))
    for reason in approval.get("plan", {}).get("destructiveReasons", ()):
        click.echo(f"- {strip_control_chars(reason['message'])}")
    click.echo(_format_input(approval["input"]))
    click.echo(strip_control_chars(_say_who_and_when(approval)))


def _format_input(value: Any) -> str:
    """Return an input as it is read: letters of all languages as they are, what cannot be seen as an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _say_who_and_when(approval: JsonObject) -> str:
    """Say who has asked for a call and until when it waits, or who has decided about it, and whether it was changed."""
    asked = f"{approval['userId']} has asked for it at {format_minute(approval['requestedAt'])}."
    if not approval.get("decidedAt"):
        return f"{asked} It waits until {format_minute(approval['deadline'])}."
    decided = (
        f"{approval['state']} by {approval.get('decidedBy') or 'nobody'} at {format_minute(approval['decidedAt'])}"
    )
    is_changed = approval.get("decidedInputHash") not in (None, approval["inputHash"])
    changed = ", with another input" if is_changed else ""
    reason = f". The reason: {approval['reason']}" if approval.get("reason") else "."
    return f"{asked} It was {decided}{changed}{reason}"


@approvals.command("approve")
@APPROVAL_ID_ARGUMENT
@click.option("--reason", default="", help="What the model and the trail are told.")
@click.option("--input", "input_json", metavar="JSON", help="Another input for the call, as a JSON object.")
@service_options
@report_errors
def approve_call(approval_id: str, reason: str, input_json: str | None, url: str | None, token: str | None) -> None:
    """Approve the call ID as it is now."""
    with connect_to_service(url, token) as client:
        seen = client.get_approval(approval_id)
        decided = client.decide_approval(
            approval_id,
            approved=True,
            reason=reason,
            changed_input=None if input_json is None else _parse_input(input_json),
            input_hash=seen["inputHash"],
        )
    click.echo(f"{strip_control_chars(decided['toolName'])}: {decided['state']}")


def _parse_input(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--input is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.UsageError("--input has to be a JSON object.")
    return value


@approvals.command("deny")
@APPROVAL_ID_ARGUMENT
@click.option("--reason", default="", help="What the model and the trail are told.")
@service_options
@report_errors
def deny_call(approval_id: str, reason: str, url: str | None, token: str | None) -> None:
    """Deny the call ID."""
    with connect_to_service(url, token) as client:
        decided = client.decide_approval(approval_id, approved=False, reason=reason)
    click.echo(f"{strip_control_chars(decided['toolName'])}: {decided['state']}")
