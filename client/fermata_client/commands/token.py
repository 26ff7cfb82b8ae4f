"""`fermata token`: print a token for the local service."""

import click

from fermata_client.commands.common import connection_options, one_sentence
from fermata_client.connection import find_connection


@click.command()
@connection_options
@one_sentence
def token(url: str | None, token: str | None, model: str | None) -> None:
    """Print the token that `make run` made, ready for an Authorization header.

    A token opens every model, so --model changes nothing here.
    """
    click.echo(find_connection(url, token).token)
