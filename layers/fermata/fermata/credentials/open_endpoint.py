"""Open a credential for a provider request: where to send it, and with which key."""

from pydantic import SecretStr

from fermata.aws.resources import Resources
from fermata.credentials import base_urls
from fermata.credentials.open_credential import open_credential
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint


def open_endpoint(resources: Resources, tenant: str, credential_id: str, version: int) -> AuthenticatedEndpoint:
    """Return where a credential's requests go, and their API key.

    The connection needs the guard `base_urls.make_url_guard`.

    Args:
        tenant: The tenant's name.
        credential_id: The credential, of any user of the tenant.
        version: The version of its key that the turn has pinned.

    Raises:
        NotFound: The credential was deleted.
        Conflict: Its key can no longer be decrypted.
        InvalidRequest: It has no base URL.
    """
    credential, api_key = open_credential(resources, tenant, credential_id, version)
    return AuthenticatedEndpoint(base_urls.get_credential_url(resources.settings, credential), SecretStr(api_key))
