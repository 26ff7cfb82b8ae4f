"""Seal the Authorization header of the user of a turn, for remote tools that receive it (decision 0395)."""

from fermata.aws.resources import Resources
from fermata.aws.vault import SecretPurpose, SecretUndecryptable
from fermata.domain.caller import Caller

MAX_AUTHORIZATION_BYTES = 4096
"""KMS seals no more. A longer header is not passed on."""
_PURPOSE: SecretPurpose = "caller-authorization"


def seal_caller_authorization(resources: Resources, caller: Caller, conversation: str, authorization: str) -> bytes:
    """Seal the header for a turn and those of its sub-agents.

    Args:
        resources: The vault.
        caller: Whose header it is. An API key is not passed on: it opens this service, and is nobody's session.
        conversation: The only one in whose turns it can be opened.
        authorization: As the user's client has sent it; empty without one.

    Returns:
        The sealed header; empty if there is none that may be passed on.
    """
    if not authorization or caller.api_key or len(authorization.encode()) > MAX_AUTHORIZATION_BYTES:
        return b""
    return resources.vault.seal_secret(authorization, purpose=_PURPOSE, tenant=caller.tenant, name=conversation)


def open_caller_authorization(resources: Resources, tenant: str, conversation: str, sealed: bytes) -> str:
    """Return the header that was sealed for a turn; empty if there is none, or if it can no longer be opened.

    Args:
        resources: The vault.
        tenant: The turn's tenant.
        conversation: Which the user sees.
        sealed: As `seal_caller_authorization` has returned it.
    """
    if not sealed:
        return ""
    try:
        return resources.vault.open_secret(sealed, purpose=_PURPOSE, tenant=tenant, name=conversation)
    except SecretUndecryptable:
        return ""
