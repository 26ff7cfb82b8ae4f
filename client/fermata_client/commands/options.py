"""Options that several commands share."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

Params = ParamSpec("Params")
Result = TypeVar("Result")

SCOPES = ("site", "content", "data", "plugin")

json_option = click.option("--json", "as_json", is_flag=True, help="Print it as the service tells it.")


def service_options(command: Callable[Params, Result]) -> Callable[Params, Result]:
    """Add `--url` and `--token`, for commands that call the service."""
    for option in (
        click.option(
            "--token", metavar="TOKEN", help="Who you are. Left out: FERMATA_TOKEN, or what `make run` wrote."
        ),
        click.option(
            "--url", metavar="URL", help="Where the service is. Left out: FERMATA_URL, or what `make run` wrote."
        ),
    ):
        command = option(command)
    return command


def turn_options(command: Callable[Params, Result]) -> Callable[Params, Result]:
    """Add `--url`, `--token` and `--model`, for commands that start a turn."""
    model = click.option("--model", metavar="ID", help="Model to use. Left out: the default of the scope.")
    return service_options(model(command))
