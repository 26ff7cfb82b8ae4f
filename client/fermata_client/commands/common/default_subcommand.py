"""Define groups of commands of which one runs when none is named: `fermata credentials` lists them."""

from collections.abc import Callable
from typing import Any

import click


class DefaultSubcommandGroup(click.Group):
    """A group that takes the options of its default subcommand too, so that `fermata credentials --json` works."""

    def __init__(self, *arguments: Any, default_subcommand: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.default_subcommand = default_subcommand

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        is_named = bool(arguments) and (not arguments[0].startswith("-") or arguments[0] in context.help_option_names)
        if not is_named and not context.resilient_parsing:  # completion offers the names of all subcommands
            arguments = [self.default_subcommand, *arguments]
        return super().parse_args(context, arguments)


def group_with_default(
    default_subcommand: str, name: str | None = None
) -> Callable[[Callable[[], None]], DefaultSubcommandGroup]:
    """Make a function a group of commands; without a subcommand, or with an option first, the default one runs."""
    return click.group(name, cls=DefaultSubcommandGroup, default_subcommand=default_subcommand)
