"""Build writes of credentials that a late copy cannot repeat (decision 0173).

A change requires the revision that it has read. A creation requires the tenant's count of removed credentials, which is
one row, so that its copy does not bring back what was removed since.
"""

from fermata.aws.dynamodb_items_and_writes import ConditionCheck, Item, Put
from fermata.aws.resources import Resources
from fermata.credentials.credential import Credential, label_sort_key
from fermata.domain.errors import Conflict

_SORT_KEY = "removals"


class CredentialChanged(Conflict):
    """Another request has changed a row since it was read."""


def build_label_row(credential: Credential) -> Item:
    """Build the row that makes the label unique."""
    key = label_sort_key(credential.user, credential.provider_id, credential.display_label)
    return {"pk": f"t#{credential.tenant}", "sk": key, "v": 1, "credential": credential.id}


def build_credential_put(table: str, old: Credential, new: Credential) -> Put:
    condition, values = build_unchanged_condition(old)
    return Put(table, new.to_row(), condition=condition, values=values)


def build_unchanged_condition(old: Credential) -> tuple[str, Item]:
    """Return the condition that a row is the one that was read. Rows from before decision 0173 have no revision."""
    values = {":version": old.version, ":label": old.display_label, ":revision": old.revision}
    is_read_revision = (
        "revision = :revision" if old.revision else "(attribute_not_exists(revision) OR revision = :revision)"
    )
    return f"version = :version AND display_label = :label AND {is_read_revision}", values


def read_removal_count(resources: Resources, tenant: str) -> int:
    item = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", _SORT_KEY)
    return int(item["count"]) if item else 0


def build_removal_check(resources: Resources, tenant: str, read_count: int) -> ConditionCheck:
    """Return the check that nothing was removed since the count was read."""
    condition, values = _build_condition(read_count)
    table = resources.settings.settings_table
    return ConditionCheck(table, f"t#{tenant}", _SORT_KEY, condition, values, {"#count": "count"})


def build_removal_put(resources: Resources, tenant: str, read_count: int) -> Put:
    """Return the write that counts one removal more."""
    condition, values = _build_condition(read_count)
    item: Item = {"pk": f"t#{tenant}", "sk": _SORT_KEY, "v": 1, "count": read_count + 1}
    return Put(resources.settings.settings_table, item, condition=condition, values=values, names={"#count": "count"})


def _build_condition(read_count: int) -> tuple[str, Item]:
    return ("#count = :read", {":read": read_count}) if read_count else ("attribute_not_exists(#count)", {})
