"""Report errors of a command as one sentence on stderr."""

import contextlib
import functools
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from fermata_client.commands.common.program_name import get_program
from fermata_client.document.disk_files import NotAnHtmlFileError
from fermata_client.html.edit_error import EditError
from fermata_client.service.connection_files import ConnectionNotConfiguredError
from fermata_client.service.errors import FermataClientError, RequestRefusedError, ServiceUnreachableError
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_command import EXIT_CODE_INTERRUPTED

JSON_IS_WANTED = "fermata_client.json_is_wanted"
"""Whether a command whose output is JSON anyway was given `--json`, in the `meta` of its context."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""What Python makes of a byte of the command line that is no text."""
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


class CommandError(click.ClickException):
    """One sentence on stderr, exit code 1."""

    is_in_output = False
    """The JSON on stdout tells of it already."""

    def show(self, file: Any = None) -> None:
        click.echo(f"fermata: {strip_control_chars(self.message)}", file=file or sys.stderr)


def report_errors(command: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Turn errors that the user can correct into a `CommandError`, and Ctrl-C into its exit code.

    Bugs keep their traceback. With `--json` the error is also an object on stdout.
    """

    @functools.wraps(command)
    def wrapped(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        try:
            _check_are_texts(kwargs)
            with _correctable_errors():
                return command(*args, **kwargs)
        except click.ClickException as error:
            if _wants_json(kwargs) and not isinstance(error, click.UsageError):  # those are printed for all commands
                print_error_as_json(error)
            raise
        except KeyboardInterrupt:
            if _wants_json(kwargs):
                click.echo(json.dumps({"status": "interrupted"}))
            raise_stopped()

    return wrapped


def _wants_json(arguments: Mapping[str, object]) -> bool:
    context = click.get_current_context(silent=True)
    return bool(arguments.get("as_json") or (context and context.meta.get(JSON_IS_WANTED)))


def _check_are_texts(arguments: Mapping[str, object]) -> None:
    """Raise `click.UsageError` if an argument has bytes that are no text, as from a terminal that is not in UTF-8."""
    for name, value in arguments.items():
        if isinstance(value, str | Path) and _SURROGATE.search(str(value)):
            remedy = "Rename the file." if isinstance(value, Path) else "Set the terminal to UTF-8, and type it again."
            raise click.UsageError(f"{name.upper()} is no text in UTF-8. {remedy}")


def print_error_as_json(error: click.ClickException) -> None:
    """Print an error to stdout, unless the JSON there tells of it already."""
    if not (isinstance(error, CommandError) and error.is_in_output):
        click.echo(json.dumps({"status": "failed", "error": error.format_message()}, ensure_ascii=False))


def raise_stopped() -> NoReturn:
    """End a command that the user has stopped."""
    click.echo("fermata: stopped.", err=True)
    raise click.exceptions.Exit(EXIT_CODE_INTERRUPTED)


def run_reporting_stack_errors(operation: Callable[[], _Result]) -> _Result:
    """Run an operation. Errors of AWS, of its settings and of the service become a `click.ClickException`."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError

        from fermata.aws.settings import SettingsError
        from fermata.domain.errors import ApiError
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"This needs the service's own package ({error.name} is missing): pip install -e layers/fermata"
        ) from error
    try:
        return operation()
    except ApiError as error:
        raise click.ClickException(error.message) from error
    except SettingsError as error:
        raise click.ClickException(f"Name the deployment with --stack. ({error})") from error
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(str(error)) from error


@contextlib.contextmanager
def _correctable_errors() -> Iterator[None]:
    try:
        yield
    except (ConnectionNotConfiguredError, NotAnHtmlFileError, EditError) as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:  # click exits quietly: the reader of the output has closed it
        raise
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from error


def explain_error(error: FermataClientError, url: str) -> str:
    """Describe an error of a request in a sentence that says what to do."""
    match error:
        case ServiceUnreachableError():
            return f"Fermata is not running at {url}. Start it with `make run`, or name another address with --url."
        case RequestRefusedError(status=401):
            remedy = f"Get a fresh one with `{get_program()} token`, or give one with --token."
            return f"{url} does not accept this token. {remedy}"
        case RequestRefusedError(status=403):
            return f"{url} does not allow this token to do that: {error.error}"
        case RequestRefusedError(status=status, error=reason):
            return f"The service refused the request with {status}: {reason}"
        case _:
            return str(error)
