"""When each credential was last used.

The rows lie in the usage table, where whoever runs a round may put rows anyway: to note a use, nobody needs the right
to change credentials.
"""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.aws.trouble import TROUBLE
from fermata.credentials import keyring
from fermata.credentials.credential import Credential
from fermata.words.caller import Caller

EVERY_SECONDS = 300


def touch(desk: Desk, tenant: str, credential_id: str) -> None:
    """Note that a credential was used now, at most every five minutes in each process.

    Call it when the provider has answered, never before it is asked. It never fails: a use that could not be noted is
    told to us and to nobody else.
    """

    def note() -> bool | None:
        item = {"pk": _place(tenant), "sk": credential_id, "v": 1, "last_used_at": desk.clock.instant()}
        try:
            desk.tables.write(Put(desk.settings.usage_table, item))
        except TROUBLE as error:
            signals.warn("credential.touch_failed", credential=credential_id, reason=str(error))
            return None
        return True

    desk.memory.recall(("touched", tenant, credential_id), EVERY_SECONDS, note)


def views(desk: Desk, caller: Caller) -> list[dict[str, Any]]:
    """The caller's credentials as they are shown, the newest first."""
    found = keyring.of_caller(desk, caller)
    used = _last_used(desk, caller.tenant) if found else {}
    return [credential.view(desk.settings.key_id, used.get(credential.id)) for credential in found]


def view(desk: Desk, credential: Credential) -> dict[str, Any]:
    used = _last_used(desk, credential.tenant, credential.id)
    return credential.view(desk.settings.key_id, used.get(credential.id))


def _last_used(desk: Desk, tenant: str, only: str = "") -> dict[str, str]:
    rows = desk.tables.query(desk.settings.usage_table, _place(tenant), low=only, high=only, consistent=False)
    return {row["sk"]: row["last_used_at"] for row in rows}


def _place(tenant: str) -> str:
    return f"t#{tenant}#credentials"
