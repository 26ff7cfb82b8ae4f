"""`fermata dead-letters`: list what could not be done in the background, and have it done again."""

from collections.abc import Iterator

import click

from fermata_client.commands.common.errors import CommandError, run_reporting_stack_errors
from fermata_client.commands.deployment.tables import REGION_OPTION, STACK_OPTION
from fermata_client.stack.dead_letters import DeadLetterQueues, ReplayedLetter
from fermata_client.stack.resources import StackLocation, find_local_stack
from fermata_client.terminal.table import print_table


@click.group("dead-letters")
def dead_letters() -> None:
    """List and replay what functions in the background could not do. An operator's commands (docs/operations.md)."""


@dead_letters.command("list")
@STACK_OPTION
@REGION_OPTION
def list_dead_letters(stack: str | None, region: str | None) -> None:
    """List how many dead letters each queue has."""
    counts = run_reporting_stack_errors(lambda: _open(stack, region).count_letters())
    print_table(("queue", "letters"), [(name, str(count)) for name, count in counts.items()])


@dead_letters.command("replay")
@click.argument("kind", type=click.Choice(["content", "webhooks"]))
@click.option("--drop-expired", is_flag=True, help="Delete letters whose changes are kept nowhere any more.")
@STACK_OPTION
@REGION_OPTION
def replay(kind: str, stack: str | None, region: str | None, *, drop_expired: bool) -> None:
    """Give changes of content to search and webhooks again, or messages for webhooks to their queue.

    Fix the cause first. A letter that fails again stays in its queue, and may be replayed again: what was done before
    is not done twice.

    Exit codes: 0 all were replayed, 1 at least one was not.
    """

    def replay_all() -> list[ReplayedLetter]:
        letters = _open(stack, region)
        return list(
            _print_letters(
                letters.replay_content(drops_expired=drop_expired) if kind == "content" else letters.replay_webhooks()
            )
        )

    outcomes = run_reporting_stack_errors(replay_all)
    kept = [one for one in outcomes if one.problem and not (one.is_expired and drop_expired)]
    click.echo(f"{len(outcomes) - len(kept)} of {len(outcomes)} letters are done.")
    if any(one.is_expired for one in outcomes):
        click.echo("Index the spaces anew with `fermata content reindex`. Webhooks were not told of these changes.")
    if kept:
        raise click.exceptions.Exit(1)


def _print_letters(letters: Iterator[ReplayedLetter]) -> Iterator[ReplayedLetter]:
    for letter in letters:
        click.echo(f"{letter.about}: {letter.problem or 'done'}")
        yield letter


def _open(stack: str | None, region: str | None) -> DeadLetterQueues:
    location = StackLocation(stack, region) if stack else find_local_stack(region)
    if location is None:
        raise CommandError("Name the stack with --stack.")
    return DeadLetterQueues(location)
