"""Define options that several commands share."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

from fermata_client.commands.common.errors import JSON_IS_WANTED

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

turn_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object to stdout, and everything else to stderr."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the response of the service as JSON.")


def _note_json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[JSON_IS_WANTED] = value


json_anyway_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_note_json,
    help="Print errors as JSON too; all else is JSON anyway.",
)


def check_prompt(prompt: str) -> None:
    """Raise `click.UsageError` for a prompt without words, before a conversation is created for it."""
    if not prompt.strip():
        raise click.UsageError("PROMPT is empty. Say what is to be done.")


def service_options(command: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Add `--url` and `--token`, for commands that call the service."""
    for option in (
        click.option(
            "--token",
            metavar="TOKEN",
            help="The token to send.  [default: FERMATA_TOKEN, or what `make run` or `fermata connect` saved]",
        ),
        click.option(
            "--url",
            metavar="URL",
            help="The address of the service.  [default: FERMATA_URL, or what `make run` or `fermata connect` saved]",
        ),
    ):
        command = option(command)
    return command


def turn_options(command: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Add `--url`, `--token` and `--model`, for commands that start a turn."""
    model = click.option("--model", metavar="ID", help="Model to use.  [default: that of the scope]")
    return service_options(model(command))
