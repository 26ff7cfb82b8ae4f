"""A credential, opened: where to send a provider request, and with which key."""

from pydantic import SecretStr

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, provider_urls
from fermata.drivers.transport.endpoint import Endpoint


def open_endpoint(resources: Resources, tenant: str, credential_id: str, version: int) -> Endpoint:
    """For a line whose guard is `addresses.guard`. NotFound, Conflict (key sealed elsewhere) or Invalid otherwise."""
    credential, key = credential_store.open_credential(resources, tenant, credential_id, version)
    return Endpoint(provider_urls.get_credential_url(resources.settings, credential), SecretStr(key))
