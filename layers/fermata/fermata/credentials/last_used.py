"""Record when each credential was last used (decision 0043).

The rows are in the usage table, where the Lambda that runs rounds may write anyway; so it needs no permission to
change credentials.
"""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.aws.settings import LAST_USE_SECONDS
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.credentials import credential_store
from fermata.credentials.credential import Credential
from fermata.domain.caller import Caller

RECORD_INTERVAL_SECONDS = 300


def record_use(resources: Resources, tenant: str, credential_id: str) -> None:
    """Record that a credential is used now, at most every five minutes in each process.

    Call it when the provider has answered. It never fails: a write that fails is logged.

    Args:
        tenant: The tenant's name.
        credential_id: The credential that the request had.
    """

    def write() -> bool | None:
        item: Item = {"pk": _last_used_partition(tenant), "sk": credential_id, "v": 1}
        item |= {"last_used_at": resources.clock.now_iso(), "ttl": int(resources.clock.time()) + LAST_USE_SECONDS}
        try:
            resources.tables.put_newest(resources.settings.usage_table, item, "last_used_at")
        except AWS_ERRORS as error:
            observability.log_warning("credential.touch_failed", credential=credential_id, reason=str(error))
            return None  # not cached, so the next use tries again
        return True

    resources.cache.get_or_load(("touched", tenant, credential_id), RECORD_INTERVAL_SECONDS, write)


def list_credential_views(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """Return the caller's credentials in their wire form, the newest first."""
    credentials = credential_store.list_credentials(resources, caller)
    instants = _read_last_used(resources, caller.tenant) if credentials else {}
    return [credential.to_view(resources.settings.key_id, instants.get(credential.id)) for credential in credentials]


def get_credential_view(resources: Resources, credential: Credential) -> dict[str, Any]:
    """Return one credential in its wire form."""
    instants = _read_last_used(resources, credential.tenant, credential.id)
    return credential.to_view(resources.settings.key_id, instants.get(credential.id))


def _read_last_used(resources: Resources, tenant: str, credential_id: str = "") -> dict[str, str]:
    """Return the instants by credential: of one, or of all the tenant's."""
    rows = resources.tables.query_items(
        resources.settings.usage_table,
        _last_used_partition(tenant),
        min_sk=credential_id,
        max_sk=credential_id,
        consistent=False,
    )
    return {row["sk"]: row["last_used_at"] for row in rows}


def _last_used_partition(tenant: str) -> str:
    return f"t#{tenant}#credentials"
