"""Connect a command to the service."""

from collections.abc import Iterator
from contextlib import contextmanager

from fermata_client.commands.common.errors import CommandError, explain_error
from fermata_client.service.client import FermataClient
from fermata_client.service.connection_settings import find_connection
from fermata_client.service.errors import FermataClientError


@contextmanager
def connect_to_service(url: str | None, token: str | None) -> Iterator[FermataClient]:
    """Yield a client of the configured service. Its errors become a `CommandError`."""
    connection = find_connection(url, token)
    with FermataClient(connection.url, connection.token) as client:
        try:
            yield client
        except FermataClientError as error:
            raise CommandError(explain_error(error, connection.url)) from error
