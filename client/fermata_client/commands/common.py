"""What the commands share: their options, and how a failure becomes one sentence and an exit code."""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import click

from fermata_client.document.html_file import NotAnHtmlFileError
from fermata_client.service.client import FermataClient
from fermata_client.service.connection import ConnectionNotConfiguredError, find_connection
from fermata_client.service.errors import FermataClientError, RequestRefusedError, ServiceUnreachableError
from fermata_client.terminal.screen import TurnPrinter, strip_control_chars
from fermata_client.turns.outcome import TurnOutcome

P = ParamSpec("P")
T = TypeVar("T")

EXIT_CODE_INTERRUPTED = 130
SCOPES = ("site", "content", "data", "plugin")

json_option = click.option("--json", "as_json", is_flag=True, help="Print it as the service tells it.")


class CommandError(click.ClickException):
    """One sentence on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"fermata: {strip_control_chars(self.message)}", file=file or sys.stderr)


def turn_options(command: Callable[P, T]) -> Callable[P, T]:
    """For commands that start a turn."""
    model = click.option("--model", metavar="ID", help="Model to use. Left out: the default of the scope.")
    return service_options(model(command))


def service_options(command: Callable[P, T]) -> Callable[P, T]:
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


def report_errors(command: Callable[P, T]) -> Callable[P, T]:
    """Turn what a user can mend into a Failure; our own mistakes keep their traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (ConnectionNotConfiguredError, NotAnHtmlFileError) as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError:  # click ends quietly: whoever read the output has seen enough
            raise
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from error

    return wrapped


@contextmanager
def connect_to_service(url: str | None, token: str | None) -> Iterator[FermataClient]:
    connection = find_connection(url, token)
    with FermataClient(connection.url, connection.token) as client:
        try:
            yield client
        except FermataClientError as error:
            raise CommandError(explain_error(error, connection.url)) from error


def explain_error(error: FermataClientError, url: str) -> str:
    match error:
        case ServiceUnreachableError():
            return f"Fermata is not running at {url}. Start it with `make run`, or name another address with --url."
        case RequestRefusedError(status=401):
            return f"{url} does not accept this token. Get a fresh one with `fermata token`, or give one with --token."
        case RequestRefusedError(status=403):
            return f"{url} does not allow this token to do that: {error.error}"
        case RequestRefusedError(status=status, error=reason):
            return f"The service refused the request with {status}: {reason}"
        case _:
            return str(error)


def print_json(found: Any) -> None:
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


def report_outcome(outcome: TurnOutcome, screen: TurnPrinter, *, as_json: bool) -> None:
    """The last words of a turn: the summary when it was asked for, and the exit code."""
    screen.end_line()
    if as_json:
        click.echo(json.dumps(outcome.to_summary(), ensure_ascii=False))
    if outcome.is_interrupted:
        click.echo("fermata: stopped.", err=True)
        raise click.exceptions.Exit(EXIT_CODE_INTERRUPTED)
    if outcome.status == "error":
        raise CommandError(f"The turn ended with an error: {outcome.error}")
    if outcome.status != "done":
        raise CommandError(f"The turn was {outcome.status}.")
