"""Display names of a tenant's users, taken from their tokens: t#<tenant>#labels, one row per user."""

import hashlib

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.caller import Caller

USER_LABEL_CACHE_SECONDS = 3600


def store_user_label(resources: Resources, caller: Caller) -> None:
    """Store the caller's display name, if the token has one; each process writes it at most once an hour.

    It never fails: a write that fails is logged.
    """
    label = caller.label
    if not label or label == caller.user:
        return

    def write_label() -> bool | None:
        digest = hashlib.sha256(caller.user.encode()).hexdigest()
        item = {"pk": labels_partition(caller.tenant), "sk": digest, "v": 1, "user": caller.user, "label": label}
        item["at"] = resources.clock.now_iso()
        try:
            resources.tables.put_newest(resources.settings.usage_table, item, "at")
        except AWS_ERRORS as error:
            observability.log_warning("user_label.not_stored", reason=str(error))
            return None  # not cached, so the next turn tries again
        return True

    resources.cache.get_or_load(("label", caller.tenant, caller.user, label), USER_LABEL_CACHE_SECONDS, write_label)


def load_user_labels(resources: Resources, tenant: str) -> dict[str, str]:
    """Return the display names that are known, by user."""
    rows = resources.tables.query_items(resources.settings.usage_table, labels_partition(tenant), consistent=False)
    return {row["user"]: row["label"] for row in rows}


def labels_partition(tenant: str) -> str:
    """Return the partition of the names of a tenant's users."""
    return f"t#{tenant}#labels"
