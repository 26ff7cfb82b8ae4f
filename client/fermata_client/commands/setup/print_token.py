"""`fermata token`: print the token of the local service."""

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.options import turn_options
from fermata_client.service.connection_settings import find_connection


@click.command()
@turn_options
@report_errors
def token(url: str | None, token: str | None, model: str | None) -> None:
    """Print the token that `make run` made, ready for an Authorization header.

    A token opens every model, so --model changes nothing here.
    """
    click.echo(find_connection(url, token).token)
