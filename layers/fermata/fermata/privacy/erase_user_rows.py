"""Erase what names a user outside of conversations: labels, budgets, keys of requests, uploads, authors of settings."""

import hashlib
from collections import Counter
from contextlib import suppress

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, Update
from fermata.aws.resources import Resources
from fermata.aws.uploads import upload_folder
from fermata.domain.errors import ServiceUnavailable
from fermata.privacy.content_authors import rename_content_author
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erase_content import erase_partition
from fermata.privacy.find_subject_rows import (
    AUTHOR_ATTRIBUTES,
    iter_settings_by_user,
    list_bridges_partitions_of_user,
)
from fermata.usage.audit.user_labels import labels_partition

_MAX_UPDATE_ATTEMPTS = 5


def erase_user_rows(resources: Resources, subject: DataSubject, erased_name: str) -> Counter[str]:
    """Delete a user's label, budget account, counts, idempotency keys and uploads; rename the author of what stays."""
    tenant, user = subject.tenant, subject.id
    usage, bridges = resources.settings.usage_table, resources.settings.bridges_table
    digest = hashlib.sha256(user.encode()).hexdigest()
    rows = erase_partition(resources, usage, labels_partition(tenant), lambda sort_key: sort_key == digest)
    rows += sum(erase_partition(resources, bridges, pk) for pk in list_bridges_partitions_of_user(subject))
    objects = resources.blobs.erase_folder(upload_folder(tenant, user))
    renamed = sum(
        _rename_authors(resources, row, user, erased_name) for row in iter_settings_by_user(resources, subject)
    )
    renamed += _remove_own_budget(resources, tenant, user)
    renamed += rename_content_author(resources, subject, erased_name)
    return Counter(rows=rows, objects=objects, settings=renamed)


def _rename_authors(resources: Resources, row: Item, user: str, erased_name: str) -> int:
    named = [attribute for attribute in AUTHOR_ATTRIBUTES if row.get(attribute) == user]
    return sum(_rename(resources, row, attribute, erased_name) for attribute in named)


def _rename(resources: Resources, row: Item, attribute: str, erased_name: str) -> int:
    """Replace an attribute's value on condition that it is unchanged, and return how many were replaced."""
    update = Update(
        resources.settings.settings_table,
        row["pk"],
        row["sk"],
        "SET #author = :new",
        {":new": erased_name, ":old": row[attribute]},
        names={"#author": attribute},
        condition="#author = :old",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        return 0
    return 1


def _remove_own_budget(resources: Resources, tenant: str, user: str) -> int:
    """Remove a user's own limits from the tenant's budgets, whose row names users.

    Raises:
        ServiceUnavailable: Administrators keep changing the budgets. The next run tries again.
    """
    for _ in range(_MAX_UPDATE_ATTEMPTS):
        row = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", "budgets")
        kept = {name: _without_user(value, user) for name, value in (row or {}).items()}
        if row is None or kept == row:
            return 0
        kept["version"] = row["version"] + 1
        put = Put(
            resources.settings.settings_table, kept, condition="version = :read", values={":read": row["version"]}
        )
        with suppress(ConditionFailed):  # an administrator changed the budgets meanwhile
            resources.tables.write_items(put)
            return 1
    raise ServiceUnavailable("The budgets of this tenant are being changed. Try again.")


def _without_user(value: object, user: str) -> object:
    """Return a map without the user's keys, as budget_limits.py writes them."""
    if not isinstance(value, dict):
        return value
    return {key: member for key, member in value.items() if key != user and key != f"user {user}"}
