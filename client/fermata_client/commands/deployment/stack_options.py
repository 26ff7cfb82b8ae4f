"""Add `--stack` and `--region` to an operator's command, which works on a deployment's AWS resources."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

from fermata_client.commands.common.errors import run_reporting_stack_errors

STACK_HELP = "The CloudFormation stack. [default: the environment variables of its functions, or what `make run` keeps]"
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def stack_options(command: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Add `--stack` and `--region`, and report the errors of the deployment in one sentence."""

    @click.option("--stack", help=STACK_HELP)
    @click.option("--region", help="The stack's AWS region.")
    @functools.wraps(command)
    def wrapped(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        return run_reporting_stack_errors(lambda: command(*args, **kwargs))

    return wrapped
