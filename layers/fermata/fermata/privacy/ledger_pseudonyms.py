"""Replace users in the ledger and its rollups by pseudonyms (decision 0257).

The ledger says what was spent, so its rows stay, and audits sum to the same. This is the only change of a ledger row.
"""

from collections.abc import Callable

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, Update
from fermata.aws.resources import Resources
from fermata.privacy.data_subject import DataSubject, is_erased_name, make_erased_name
from fermata.privacy.find_subject_rows import iter_ledger_rows
from fermata.usage.ledger.ledger_store import move_to_tenant


def rename_user_in_ledger(
    resources: Resources, subject: DataSubject, erased_name: str, is_included: Callable[[Item], bool]
) -> int:
    """Give the ledger rows of a user a pseudonym.

    Args:
        is_included: Whether a row is to be renamed.

    Returns:
        How many rows were renamed.
    """
    rows = (row for row in iter_ledger_rows(resources, subject) if is_included(row))
    return sum(_rename_user(resources, row, erased_name) for row in rows)


def _rename_user(resources: Resources, row: Item, erased_name: str) -> int:
    update = Update(
        resources.settings.usage_table,
        row["pk"],
        row["sk"],
        "SET #user = :new",
        {":new": erased_name, ":old": row["user"]},
        names={"#user": "user"},
        condition="#user = :old",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:  # the index is behind: another run has renamed it
        return 0
    return 1


def copy_to_erased_tenant(resources: Resources, row: Item, erased_tenant: str, salt: str) -> None:
    """Copy a ledger row of a tenant to the ledger of its pseudonym, with a pseudonym for its user.

    The stream counts the copy into the rollups of the pseudonym, as any new row.
    """
    user = row["user"] if is_erased_name(row["user"]) else make_erased_name(salt, row["user"])
    moved = move_to_tenant(row, erased_tenant) | {"user": user}
    try:
        resources.tables.write_items(Put(resources.settings.usage_table, moved, if_absent=True))
    except ConditionFailed:  # an earlier run copied it, and was stopped before the row was deleted
        return
