"""Report wrong usage as JSON too, before a command has read its options."""

from typing import Any

import click

from fermata_client.commands.common.errors import print_error_as_json

JSON_FLAG = "--json"
_ARGUMENTS = "fermata_client.arguments"


class UsageReportingGroup(click.Group):
    """A group that prints wrong usage of its commands to stdout as well, if the arguments ask for JSON."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.meta[_ARGUMENTS] = tuple(arguments)
        try:
            return super().parse_args(context, arguments)
        except click.UsageError as error:
            _report(context, error)
            raise

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except click.UsageError as error:
            _report(context, error)
            raise


def _report(context: click.Context, error: click.UsageError) -> None:
    options = context.meta[_ARGUMENTS]
    if "--" in options:
        options = options[: options.index("--")]
    if JSON_FLAG in options and not isinstance(error, click.exceptions.NoArgsIsHelpError):
        print_error_as_json(error)
