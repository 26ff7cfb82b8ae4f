"""Show people their credentials, with when each was last used."""

from typing import Any

from fermata.aws.resources import Resources
from fermata.credentials.credential import Credential
from fermata.credentials.credential_store import list_credentials
from fermata.credentials.last_used import read_credential_uses
from fermata.domain.caller import Caller


def list_credential_views(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """Return the caller's credentials in their wire form, the newest first."""
    credentials = list_credentials(resources, caller)
    instants = read_credential_uses(resources, caller.tenant) if credentials else {}
    return [credential.to_view(resources.settings.key_id, instants.get(credential.id)) for credential in credentials]


def get_credential_view(resources: Resources, credential: Credential) -> dict[str, Any]:
    """Return one credential in its wire form."""
    instants = read_credential_uses(resources, credential.tenant, credential.id)
    return credential.to_view(resources.settings.key_id, instants.get(credential.id))
