"""`fermata billing`: name the system that is told what workspaces use, and look at what it has not taken.

An operator's command: it reads and writes the deployment's tables, and uses its key.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fermata_client.commands.deployment.stack_options import stack_options
from fermata_client.stack.resources import open_operator_resources

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

SECRET_NOTE = "Store it where the billing system checks signatures. It cannot be printed again:"


@click.group()
def billing() -> None:
    """Report what workspaces use to a billing system, and see what it has not taken (docs/workspace-plans.md)."""


@billing.command("set")
@click.argument("url")
@stack_options
def set_receiver(url: str, stack: str | None, region: str | None) -> None:
    """Report usage to URL from now on. The secret that signs reports is printed to standard output."""
    from fermata.billing.billing_receiver import set_billing_receiver

    secret = set_billing_receiver(open_operator_resources(stack, region), url)
    click.echo(SECRET_NOTE, err=True)
    click.echo(secret)


@billing.command("remove")
@stack_options
def remove_receiver(stack: str | None, region: str | None) -> None:
    """Report usage to nobody. What is used stays counted, and goes to the next receiver."""
    from fermata.billing.billing_receiver import remove_billing_receiver

    remove_billing_receiver(open_operator_resources(stack, region))
    click.echo("Usage is reported to nobody.", err=True)


@billing.command("show")
@stack_options
def show_reports(stack: str | None, region: str | None) -> None:
    """Print the receiver, and every report that it has not taken, with the last error, as JSON."""
    from fermata.billing.billing_receiver import read_billing_receiver

    resources = open_operator_resources(stack, region)
    receiver = read_billing_receiver(resources)
    shown = {"receiver": receiver.to_view() if receiver else None, "reports": list(_iter_reports(resources))}
    click.echo(json.dumps(shown, indent=2))


@billing.command("retry")
@stack_options
def retry_reports(stack: str | None, region: str | None) -> None:
    """Have reports that were given up sent again, within an hour. Fix the cause first."""
    from fermata.billing.deliver_usage_report import retry_failed_reports
    from fermata.billing.queue_usage_reports import list_tenant_names

    resources = open_operator_resources(stack, region)
    count = sum(retry_failed_reports(resources, name) for name in list_tenant_names(resources))
    click.echo(f"{count} reports are sent again within an hour.")


def _iter_reports(resources: "Resources") -> Iterator[dict[str, Any]]:
    from fermata.billing.queue_usage_reports import list_tenant_names
    from fermata.billing.usage_report import read_workspace_reports

    for name in sorted(list_tenant_names(resources)):
        yield from (report.to_view(name) for report in read_workspace_reports(resources, name).waiting)
