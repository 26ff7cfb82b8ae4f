"""`fermata webhooks`: list, add and remove webhooks, show their deliveries, deliver an event again."""

import click

from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

WEBHOOK_EVENTS = (
    "toolRequest",
    "approvalRequest",
    "turnEnd",
    "content.documentCreated",
    "content.documentChanged",
    "content.documentPublished",
    "content.documentUnpublished",
    "content.documentDeleted",
    "content.modelChanged",
    "content.changeSetOpened",
    "content.changeSetMerged",
    "content.changeSetRejected",
    "forms.submissionReceived",
    "forms.submissionDecided",
)
WEBHOOK_ID_ARGUMENT = click.argument("webhook_id", metavar="ID")


@group_with_default("list", name="webhooks")
def webhooks() -> None:
    """List your webhooks, add or remove one, see and repeat deliveries. Alone, it lists them."""


@webhooks.command("list")
@json_option
@service_options
@report_errors
def list_webhooks(as_json: bool, url: str | None, token: str | None) -> None:
    """List the webhooks, the oldest first."""
    with connect_to_service(url, token) as client:
        found = client.list_webhooks()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            webhook["id"],
            "on" if webhook["enabled"] else "off",
            ", ".join(webhook["events"]),
            "yes" if webhook["mayAnswer"] else "no",
            strip_control_chars(webhook["url"]),
        )
        for webhook in found
    ]
    print_table(("id", "state", "events", "answers", "address"), rows)


@webhooks.command("add")
@click.argument("address")
@click.option(
    "--event", "events", type=click.Choice(WEBHOOK_EVENTS), multiple=True, help="Which.  [default: all of turns]"
)
@click.option("--may-answer", is_flag=True, help="Its responses may answer tool requests and approvals.")
@service_options
@report_errors
def add_webhook(address: str, events: tuple[str, ...], may_answer: bool, url: str | None, token: str | None) -> None:
    """Tell the server at ADDRESS about turns that start from now on. Its signing secret is printed once."""
    with connect_to_service(url, token) as client:
        added = client.add_webhook(address, events=list(events), may_answer=may_answer)
    click.echo(f"The webhook {added['webhook']['id']}, with its signing secret, shown only now:", err=True)
    click.echo(added["signingSecret"])


@webhooks.command("remove")
@WEBHOOK_ID_ARGUMENT
@click.confirmation_option(prompt="Remove this webhook?", help="Do not ask.")
@service_options
@report_errors
def remove_webhook(webhook_id: str, url: str | None, token: str | None) -> None:
    """Remove the webhook ID. What waits for it is not delivered any more."""
    with connect_to_service(url, token) as client:
        client.remove_webhook(webhook_id)
    click.echo(f"{webhook_id} is removed.")


@webhooks.command("deliveries")
@WEBHOOK_ID_ARGUMENT
@json_option
@service_options
@report_errors
def list_deliveries(webhook_id: str, as_json: bool, url: str | None, token: str | None) -> None:
    """List the newest deliveries of the webhook ID."""
    with connect_to_service(url, token) as client:
        found = client.list_deliveries(webhook_id)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            format_minute(delivery["at"]),
            delivery["event"],
            delivery["state"],
            str(delivery["attempts"]),
            str(delivery.get("status", "")),
            strip_control_chars(delivery["id"]),
        )
        for delivery in found
    ]
    print_table(("at", "event", "state", "attempts", "status", "id"), rows)


@webhooks.command("redeliver")
@WEBHOOK_ID_ARGUMENT
@click.argument("delivery_id", metavar="DELIVERY")
@service_options
@report_errors
def redeliver_event(webhook_id: str, delivery_id: str, url: str | None, token: str | None) -> None:
    """Send the event of DELIVERY to the webhook ID again."""
    with connect_to_service(url, token) as client:
        client.redeliver_event(webhook_id, delivery_id)
    click.echo("It is queued.")
