"""`fermata tables`: back up the tables of a deployment, restore them, and stop what knew the tables before."""

import datetime as dt

import click

from fermata_client.commands.common.errors import CommandError, run_reporting_stack_errors
from fermata_client.stack.resources import StackLocation, find_local_stack
from fermata_client.stack.table_backups import STACK_TABLES, TableRestore, back_up_tables, stop_executions

STACK_OPTION = click.option(
    "--stack", metavar="NAME", help="The CloudFormation stack. [default: the one that `make run` keeps]"
)
REGION_OPTION = click.option("--region", help="The stack's AWS region.")
LABEL_FORMAT = "%Y%m%dT%H%M%S"


@click.group()
def tables() -> None:
    """Back up and restore the tables of a deployment. An operator's commands (docs/operations.md)."""


@tables.command("back-up")
@click.option("--name", "backup_name", metavar="NAME", help="The name of the backups. [default: the time]")
@STACK_OPTION
@REGION_OPTION
def back_up(backup_name: str | None, stack: str | None, region: str | None) -> None:
    """Make a backup of each table. It stays until somebody deletes it, unlike point-in-time recovery."""
    location, name = _locate(stack, region), backup_name or f"fermata-{dt.datetime.now(dt.UTC):{LABEL_FORMAT}}"

    def print_backups() -> None:
        for table in back_up_tables(location, name):
            click.echo(f"{table}: {name}")

    run_reporting_stack_errors(print_backups)


@tables.command("restore")
@click.option("--at", "at_text", metavar="INSTANT", help="Restore this instant, as 2026-11-28T12:00:00Z.")
@click.option("--backup", "backup_name", metavar="NAME", help="Restore the backups of this name.")
@click.option("--label", metavar="WORD", help="The end of the new tables' names. [default: the time]")
@click.option("--unprotected", is_flag=True, help="Let DynamoDB delete the new tables.")
@STACK_OPTION
@REGION_OPTION
def restore(
    at_text: str | None,
    backup_name: str | None,
    label: str | None,
    unprotected: bool,
    stack: str | None,
    region: str | None,
) -> None:
    """Restore all tables under new names, and print the parameters with which the stack adopts them.

    Nothing of the stack changes. Without --at and --backup, each table's newest backup is restored; DynamoDB makes one
    of a table that is deleted. After an interruption, repeat the command with the --label that it has printed.
    """
    if at_text and backup_name:
        raise CommandError("Give one of --at and --backup.")
    at = _parse_instant(at_text) if at_text else None
    location, word = _locate(stack, region), label or f"{dt.datetime.now(dt.UTC):{LABEL_FORMAT}}"
    click.echo(f"The new tables' label is {word}.", err=True)

    def restore_all() -> None:
        restored = TableRestore(location, word)
        for table in STACK_TABLES:
            origin = restored.start(table, at=at, backup_name=backup_name)
            click.echo(f"{restored.target_name(table)}: from {origin}", err=True)
        for table in STACK_TABLES:
            parameter, value = restored.finish(table, is_protected=not unprotected)
            click.echo(f"{parameter}={value}")

    run_reporting_stack_errors(restore_all)


@tables.command("stop-executions")
@STACK_OPTION
@REGION_OPTION
def stop_all_executions(stack: str | None, region: str | None) -> None:
    """Stop the executions that run. Their turns go on in new ones, from what the adopted tables say."""
    count = run_reporting_stack_errors(lambda: stop_executions(_locate(stack, region)))
    click.echo(f"Stopped {count:,} execution{'' if count == 1 else 's'}.")


def _locate(stack: str | None, region: str | None) -> StackLocation:
    location = StackLocation(stack, region) if stack else find_local_stack(region)
    if location is None:
        raise CommandError("Name the stack with --stack.")
    return location


def _parse_instant(text: str) -> dt.datetime:
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no instant such as 2026-11-28T12:00:00Z.") from error
    if instant.tzinfo is None:
        raise CommandError(f"Say in which time zone {text} is: {text}Z is UTC.")
    return instant
