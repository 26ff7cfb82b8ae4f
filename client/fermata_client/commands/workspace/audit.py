"""`fermata audit`: show usage; for an operator, also reconcile and rebuild the rollups."""

from datetime import datetime

import click

from fermata_client.commands.common.errors import CommandError, report_errors, run_reporting_stack_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.json_types import JsonObject
from fermata_client.stack.resources import StackLocation, find_local_stack, open_stack_resources
from fermata_client.stack.usage_logs import read_usage_records, rollup_log_group, write_missing_usage_records

COLUMN_HEADINGS = ("prompt", "completion", "chats", "USD")
MIN_NAME_WIDTH = 12
NUMBER_WIDTH = 14
SECTION_TITLES = {"byUser": "by user", "byScope": "by scope", "byModel": "by model", "byDay": "by day"}


def _check_instant(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    try:
        datetime.fromisoformat(value or "2026-01-01")
    except ValueError:
        raise click.BadParameter(f"{value} is no date. Write one as 2026-11-01, or 2026-11-01T09:30:00Z.") from None
    return value


@click.command()
@click.option(
    "--since",
    metavar="INSTANT",
    callback=_check_instant,
    help="Start: 2026-11-01, or a full instant. [default: 30 days ago]",
)
@click.option("--tz", metavar="ZONE", help="Time zone of the days, such as Europe/Berlin. [default: UTC]")
@json_option
@service_options
@click.option("--reconcile", is_flag=True, help="Compare ledger, rollups and log lines, and list differences.")
@click.option("--rebuild", is_flag=True, help="Rebuild the rollups from the ledger, and write missing log lines.")
@click.option("--verify", is_flag=True, help="Check the trail of decisions about tool calls, link by link.")
@click.option("--hash", "noted_hash", default="", metavar="HASH", help="A hash that an earlier --verify has printed.")
@click.option(
    "--tenant", metavar="NAME", default="local", show_default=True, help="The tenant to reconcile, rebuild or verify."
)
@click.option("--stack", metavar="NAME", help="The CloudFormation stack. [default: the one that `make run` keeps]")
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
    verify: bool,
    noted_hash: str,
    tenant: str,
    stack: str | None,
    region: str | None,
) -> None:
    """Show the usage by user, scope, model and day.

    --reconcile, --rebuild and --verify are for operators: they read and write a deployment's own tables and logs, with
    the credentials of its AWS account.
    """
    if not (reconcile or rebuild or verify):
        with connect_to_service(url, token) as client:
            _print_audit(client.get_audit(since=since, tz=tz), as_json=as_json)
        return
    location = StackLocation(stack, region) if stack else find_local_stack(region) or StackLocation(None, region)
    if rebuild:
        run_reporting_stack_errors(lambda: _rebuild(location, tenant))
    if verify:
        run_reporting_stack_errors(lambda: _verify(location, tenant, noted_hash))
    if reconcile:
        run_reporting_stack_errors(lambda: _reconcile(location, tenant, since, tz))


def _print_audit(report: JsonObject, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    click.echo(f"since {report['since']}")
    _print_section("", [("everything", report["totals"])])
    for section, title in SECTION_TITLES.items():
        _print_section(title, [(_row_name(row), row) for row in report[section]])


def _row_name(row: JsonObject) -> str:
    if "modelId" in row:
        return f"{row['providerId']}/{row['modelId']}"
    return str(row.get("userLabel") or row.get("scope") or row.get("day"))


def _print_section(title: str, rows: list[tuple[str, JsonObject]]) -> None:
    width = max([len(name) for name, _ in rows] + [len(title), MIN_NAME_WIDTH])
    click.echo("\n" + title.ljust(width) + "".join(heading.rjust(NUMBER_WIDTH) for heading in COLUMN_HEADINGS))
    for name, row in rows:
        counts = (row["promptTokens"], row["completionTokens"], row["chatCount"])
        numbers = [f"{number:,}" for number in counts] + [f"{row['costUsd']:,.4f}"]
        click.echo(name.ljust(width) + "".join(number.rjust(NUMBER_WIDTH) for number in numbers) + _unpriced_note(row))


def _unpriced_note(row: JsonObject) -> str:
    """Say how many requests have no price: their cost is unknown and counts as 0 (decision 0085)."""
    count = row.get("unpricedRequests", 0)
    return f"  + {count:,} without a known price" if count else ""


def _rebuild(location: StackLocation, tenant: str) -> None:
    from fermata.usage.rollups.rebuild import rebuild_rollups

    def report_unreadable_row(row: str) -> None:
        click.echo(f"Skipped, because it cannot be read: {row}.")

    resources = open_stack_resources(location)
    row_count = rebuild_rollups(resources, tenant, report_unreadable_row)
    click.echo(f"Rebuilt the rollups of {tenant} from {row_count:,} rows of the ledger.")
    logs = location.create_client("logs")
    if written_count := write_missing_usage_records(resources, tenant, logs, rollup_log_group(location.stack)):
        click.echo(f"Wrote the missing log lines of {written_count:,} of them.")


def _verify(location: StackLocation, tenant: str, noted_hash: str) -> None:
    from fermata.turns.approvals.decision_trail import verify_trail

    report = verify_trail(open_stack_resources(location), tenant, noted_hash)
    if report.problem:
        raise CommandError(
            f"The trail of {tenant} is broken at entry {report.broken_number:,}. {report.problem} "
            f"{'1 entry before it holds' if report.entries == 1 else f'{report.entries:,} entries before it hold'}."
        )
    noun = "decision" if report.entries == 1 else "decisions"
    click.echo(f"The trail of {tenant} holds: {report.entries:,} {noun}. Its newest hash is {report.hash}.")


def _reconcile(location: StackLocation, tenant: str, since: str | None, tz: str | None) -> None:
    from fermata.usage.audit.query_parameters import parse_since
    from fermata.usage.audit.reconciliation import reconcile_usage

    resources = open_stack_resources(location)
    start = parse_since(since, resources.clock.time())
    records = read_usage_records(location.create_client("logs"), rollup_log_group(location.stack), start.timestamp())
    differences = reconcile_usage(resources, tenant, since, tz, records)
    for difference in differences:
        click.echo(difference)
    if differences:
        raise CommandError(f"The usage of {tenant} since {start:%Y-%m-%dT%H:%MZ} has {len(differences)} differences.")
    click.echo(f"Ledger, rollups and log lines of {tenant} agree since {start:%Y-%m-%dT%H:%MZ}.")
