"""Options and error reports of an operator's commands, which work on a deployment's AWS resources."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def stack_options(command: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Add `--stack` and `--region`, and report the errors of the deployment in one sentence."""

    @click.option("--stack", help="The CloudFormation stack. Without it, the environment variables of its functions.")
    @click.option("--region", help="The stack's AWS region.")
    @functools.wraps(command)
    def wrapped(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        return run_reporting_stack_errors(lambda: command(*args, **kwargs))

    return wrapped


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
