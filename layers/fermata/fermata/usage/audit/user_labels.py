"""What a tenant's users are called, where their tokens say so: t#<tenant>#labels, one row a user."""

import hashlib

from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller

USER_LABEL_CACHE_SECONDS = 3600


def store_user_label(resources: Resources, caller: Caller) -> None:
    """Written at most once an hour by each process, and only where there is something to write."""
    label = caller.label
    if not label or label == caller.user:
        return

    def keep() -> bool:
        digest = hashlib.sha256(caller.user.encode()).hexdigest()
        item = {"pk": _labels_partition(caller.tenant), "sk": digest, "v": 1, "user": caller.user, "label": label}
        resources.tables.write_items(Put(resources.settings.usage_table, item))
        return True

    resources.cache.get_or_load(("label", caller.tenant, caller.user, label), USER_LABEL_CACHE_SECONDS, keep)


def load_user_labels(resources: Resources, tenant: str) -> dict[str, str]:
    rows = resources.tables.query_items(resources.settings.usage_table, _labels_partition(tenant), consistent=False)
    return {row["user"]: row["label"] for row in rows}


def _labels_partition(tenant: str) -> str:
    return f"t#{tenant}#labels"
