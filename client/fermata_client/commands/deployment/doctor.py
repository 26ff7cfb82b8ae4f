"""`fermata doctor`: examine an account before a deployment, and a deployed stack after it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fermata_client.commands.common.errors import CommandError, run_reporting_stack_errors
from fermata_client.stack.resources import StackLocation, find_local_stack

if TYPE_CHECKING:
    from fermata_client.stack.doctor.finding import Finding

FOLDER = click.Path(file_okay=False, path_type=Path)
MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


@click.command()
@click.option("--config-env", default="default", show_default=True, help="The environment of samconfig.toml.")
@click.option("--folder", type=FOLDER, default=Path(), help="A clone of the project.")
@click.option("--region", help="The AWS region. [default: that of samconfig.toml, or of your AWS settings]")
@click.option("--stack", metavar="NAME", help="Examine this deployed stack, with a turn, instead of the account.")
@click.option("--url", help="The stack's address, where it has a domain of its own. [default: its output ApiUrl]")
@click.option("--local", is_flag=True, help="Examine the local cloud that `make run` has started.")
def doctor(
    config_env: str, folder: Path, region: str | None, stack: str | None, url: str | None, *, local: bool
) -> None:
    """Examine an AWS account before a deployment: credentials, region, layer, parameters, quotas, stack.

    With --stack, examine a deployed stack: its address, a turn with its test model, its alarms. The turn runs in the
    tenant fermata-doctor, which is added for it. Needs the permissions of an operator.

    Exit codes: 0 no problem, 1 at least one.
    """
    location = _locate(stack, region, is_local=local)
    findings = run_reporting_stack_errors(
        lambda: _print_findings(
            _examine_stack(location, url) if location.stack else _examine_plan(location, folder, config_env)
        )
    )
    if any(finding.level == "problem" for finding in findings):
        raise click.exceptions.Exit(1)


def _locate(stack: str | None, region: str | None, *, is_local: bool) -> StackLocation:
    if not is_local:
        return StackLocation(stack, region)
    location = find_local_stack(region)
    if location is None:
        raise CommandError(
            "No local cloud runs from this folder. Run this in the folder in which you have started `make run`."
        )
    return location


def _print_findings(findings: Iterator["Finding"]) -> list["Finding"]:
    """Print each finding as soon as it is there: a turn and a slow service take their time."""
    printed = []
    for finding in findings:
        click.echo(f"{MARKS[finding.level]}  {finding.subject}: {finding.text}")
        printed.append(finding)
    return printed


def _examine_plan(location: StackLocation, folder: Path, config_env: str) -> Iterator["Finding"]:
    from fermata_client.stack.doctor.account_checks import examine_account
    from fermata_client.stack.doctor.deployment_plan import read_deployment_plan
    from fermata_client.stack.doctor.parameter_checks import check_parameters
    from fermata_client.stack.doctor.quota_checks import check_concurrency, check_request_quotas

    plan = read_deployment_plan(folder, config_env)
    located = StackLocation(None, location.region or plan.region, location.local)
    yield from check_parameters(plan)
    is_usable = True
    for finding in examine_account(located, plan):
        is_usable = is_usable and not (finding.subject in ("region", "credentials") and finding.level == "problem")
        yield finding
    if is_usable:
        yield from check_concurrency(located, plan)
        yield from check_request_quotas(located)


def _examine_stack(location: StackLocation, url: str | None) -> Iterator["Finding"]:
    from fermata_client.stack.doctor.alarm_checks import check_alarms
    from fermata_client.stack.doctor.deployed_stack_checks import check_deployed_stack
    from fermata_client.stack.doctor.turn_check import check_turn

    finding, outputs = check_deployed_stack(location)
    yield finding
    if finding.level == "problem":
        return
    local_url = location.local.service_url if location.local else ""
    yield from check_turn(location, (url or local_url or outputs["ApiUrl"]).rstrip("/"))
    yield from check_alarms(location, str(location.stack))
