"""Record and read when each credential was last used (decision 0043)."""

from fermata.aws.last_uses import read_last_uses, store_last_use
from fermata.aws.resources import Resources

RECORD_INTERVAL_SECONDS = 300


def record_use(resources: Resources, tenant: str, credential_id: str) -> None:
    """Record that a credential is used now, at most every five minutes in each process.

    Call it when the provider has answered. It never fails: a write that fails is logged.

    Args:
        tenant: The tenant's name.
        credential_id: The credential that the request had.
    """

    def write() -> bool | None:
        # What was not stored is not cached, so the next use tries again.
        return store_last_use(resources, _last_used_partition(tenant), credential_id, "credential") or None

    resources.cache.get_or_load(("touched", tenant, credential_id), RECORD_INTERVAL_SECONDS, write)


def read_credential_uses(resources: Resources, tenant: str, credential_id: str = "") -> dict[str, str]:
    """Return the instants by credential: of one, or of all the tenant's."""
    return read_last_uses(resources, _last_used_partition(tenant), credential_id)


def _last_used_partition(tenant: str) -> str:
    return f"t#{tenant}#credentials"
