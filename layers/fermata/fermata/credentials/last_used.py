"""When each credential was last used.

The rows lie in the usage table, where whoever runs a round may put rows anyway: to note a use, nobody needs the right
to change credentials.
"""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.credentials import credential_store
from fermata.credentials.credential import Credential
from fermata.domain.caller import Caller

RECORD_INTERVAL_SECONDS = 300


def record_use(resources: Resources, tenant: str, credential_id: str) -> None:
    """Note that a credential was used now, at most every five minutes in each process.

    Call it when the provider has answered, never before it is asked. It never fails: a use that could not be noted is
    told to us and to nobody else.
    """

    def note() -> bool | None:
        item = {
            "pk": _last_used_partition(tenant),
            "sk": credential_id,
            "v": 1,
            "last_used_at": resources.clock.now_iso(),
        }
        try:
            resources.tables.write_items(Put(resources.settings.usage_table, item))
        except AWS_ERRORS as error:
            observability.log_warning("credential.touch_failed", credential=credential_id, reason=str(error))
            return None
        return True

    resources.cache.get_or_load(("touched", tenant, credential_id), RECORD_INTERVAL_SECONDS, note)


def list_credential_views(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """The caller's credentials as they are shown, the newest first."""
    found = credential_store.list_credentials(resources, caller)
    used = _last_used(resources, caller.tenant) if found else {}
    return [credential.to_view(resources.settings.key_id, used.get(credential.id)) for credential in found]


def get_credential_view(resources: Resources, credential: Credential) -> dict[str, Any]:
    used = _last_used(resources, credential.tenant, credential.id)
    return credential.to_view(resources.settings.key_id, used.get(credential.id))


def _last_used(resources: Resources, tenant: str, only: str = "") -> dict[str, str]:
    rows = resources.tables.query_items(
        resources.settings.usage_table, _last_used_partition(tenant), min_sk=only, max_sk=only, consistent=False
    )
    return {row["sk"]: row["last_used_at"] for row in rows}


def _last_used_partition(tenant: str) -> str:
    return f"t#{tenant}#credentials"
