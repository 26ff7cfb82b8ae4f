"""A credential, opened: where to send a provider request, and with which key."""

from pydantic import SecretStr

from fermata.aws.desk import Desk
from fermata.credentials import addresses, keyring
from fermata.drivers.endpoint import Endpoint


def endpoint(desk: Desk, tenant: str, credential_id: str, version: int) -> Endpoint:
    """For a line whose guard is `addresses.guard`. NotFound, Conflict (key sealed elsewhere) or Invalid otherwise."""
    credential, key = keyring.opened(desk, tenant, credential_id, version)
    return Endpoint(addresses.address(desk.settings, credential), SecretStr(key))
