"""`fermata audit`: what was used; and for an operator, whether the books agree, and to make them anew."""

from typing import TYPE_CHECKING, Any

import click

from fermata_client.commands.common import (
    CommandError,
    connect_to_service,
    json_option,
    print_json,
    report_errors,
    service_options,
)
from fermata_client.stack.resources import open_stack_resources, run_reporting_errors, select_local_stack
from fermata_client.stack.usage_logs import read_usage_records, rollup_log_group, write_missing_usage_records

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

COLUMN_HEADINGS = ("", "prompt", "completion", "chats", "USD")
SECTION_TITLES = {"byUser": "by user", "byScope": "by scope", "byModel": "by model", "byDay": "by day"}


@click.command()
@click.option("--since", metavar="INSTANT", help="From when on: 2026-11-01, or a whole instant. [default: 30 days ago]")
@click.option("--tz", metavar="ZONE", help="Whose days, such as Europe/Berlin. [default: UTC]")
@json_option
@service_options
@click.option("--reconcile", is_flag=True, help="Compare ledger, rollups and log lines, and name what differs.")
@click.option("--rebuild", is_flag=True, help="Make the rollups anew from the ledger, and write missing lines.")
@click.option("--tenant", metavar="NAME", default="local", show_default=True, help="Whose books.")
@click.option("--stack", metavar="NAME", help="The CloudFormation stack. Left out: the one that `make run` keeps.")
@click.option("--region", help="The stack's AWS region.")
@report_errors
def audit(
    since: str | None,
    tz: str | None,
    as_json: bool,
    url: str | None,
    token: str | None,
    reconcile: bool,
    rebuild: bool,
    tenant: str,
    stack: str | None,
    region: str | None,
) -> None:
    """Show what was used, by user, scope, model and day.

    --reconcile and --rebuild are an operator's: they work on a deployment's own tables and logs, with the
    credentials of its AWS account.
    """
    if not (reconcile or rebuild):
        with connect_to_service(url, token) as client:
            _show(client.get_audit(since=since, tz=tz), as_json=as_json)
        return
    stack = stack or select_local_stack()
    if rebuild:
        run_reporting_errors(lambda: _rebuild(open_stack_resources(stack, region), stack, tenant))
    if reconcile:
        run_reporting_errors(lambda: _reconcile(open_stack_resources(stack, region), stack, tenant, since, tz))


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    click.echo(f"since {found['since']}")
    _table("", [("everything", found["totals"])])
    for part, title in SECTION_TITLES.items():
        _table(title, [(_name(row), row) for row in found[part]])


def _name(row: dict[str, Any]) -> str:
    if "modelId" in row:
        return f"{row['providerId']}/{row['modelId']}"
    return str(row.get("userLabel") or row.get("scope") or row.get("day"))


def _table(title: str, rows: list[tuple[str, dict[str, Any]]]) -> None:
    width = max([len(name) for name, _ in rows] + [len(title), 12])
    click.echo("\n" + title.ljust(width) + "".join(heading.rjust(14) for heading in COLUMN_HEADINGS[1:]))
    for name, row in rows:
        counts = (row["promptTokens"], row["completionTokens"], row["chatCount"])
        numbers = [f"{number:,}" for number in counts] + [f"{row['costUsd']:,.4f}"]
        click.echo(name.ljust(width) + "".join(number.rjust(14) for number in numbers) + _unpriced(row))


def _unpriced(row: dict[str, Any]) -> str:
    """A cost that nobody knows looks like none."""
    count = row.get("unpricedRequests", 0)
    return f"  + {count:,} without a known price" if count else ""


def _rebuild(resources: "Resources", stack: str | None, tenant: str) -> None:
    from fermata.usage.rollups.rebuild import rebuild_rollups

    def pass_over(row: str) -> None:
        click.echo(f"Passed over, because it cannot be read: {row}.")

    rows = rebuild_rollups(resources, tenant, pass_over)
    click.echo(f"The rollups of {tenant} are made anew, from {rows:,} rows of the ledger.")
    if told := write_missing_usage_records(resources, tenant, rollup_log_group(stack)):
        click.echo(f"Nobody had told of {told:,} of them: their lines are in the logs now.")


def _reconcile(resources: "Resources", stack: str | None, tenant: str, since: str | None, tz: str | None) -> None:
    from fermata.usage.audit.query_parameters import parse_since as resolved
    from fermata.usage.audit.reconciliation import reconcile_usage

    start = resolved(since, resources.clock.time())
    differences = reconcile_usage(
        resources, tenant, since, tz, read_usage_records(rollup_log_group(stack), start.timestamp())
    )
    for difference in differences:
        click.echo(difference)
    if differences:
        raise CommandError(f"The books of {tenant} differ in {len(differences)} places since {start:%Y-%m-%dT%H:%MZ}.")
    click.echo(f"The books of {tenant} agree since {start:%Y-%m-%dT%H:%MZ}: ledger, rollups and log lines.")
