"""What a tenant's users are called, where their tokens say so: t#<tenant>#labels, one row a user."""

import hashlib

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.words.caller import Caller

REMEMBERED = 3600


def remember(desk: Desk, caller: Caller) -> None:
    """Written at most once an hour by each process, and only where there is something to write."""
    label = caller.label
    if not label or label == caller.user:
        return

    def keep() -> bool:
        digest = hashlib.sha256(caller.user.encode()).hexdigest()
        item = {"pk": _place(caller.tenant), "sk": digest, "v": 1, "user": caller.user, "label": label}
        desk.tables.write(Put(desk.settings.usage_table, item))
        return True

    desk.memory.recall(("label", caller.tenant, caller.user, label), REMEMBERED, keep)


def labels_of(desk: Desk, tenant: str) -> dict[str, str]:
    rows = desk.tables.query(desk.settings.usage_table, _place(tenant), consistent=False)
    return {row["user"]: row["label"] for row in rows}


def _place(tenant: str) -> str:
    return f"t#{tenant}#labels"
