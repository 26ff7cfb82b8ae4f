"""Mark the name of a tenant that is being erased, so that nobody adds it again before that is done (decision 0265).

    erasing#<sha256 of the name>    tenant

A late copy of a delete, or the last pass of the erasure, would hit the new tenant.
"""

import hashlib

from fermata.aws.dynamodb_items_and_writes import Delete, Put
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict

_SORT_KEY = "tenant"


def build_erasure_mark_put(resources: Resources, tenant: str) -> Put:
    item = {"pk": _erasure_mark_partition(tenant), "sk": _SORT_KEY, "v": 1}
    return Put(resources.settings.settings_table, item)


def build_erasure_mark_delete(resources: Resources, tenant: str) -> Delete:
    return Delete(resources.settings.settings_table, _erasure_mark_partition(tenant), _SORT_KEY)


def check_tenant_is_not_erased(resources: Resources, tenant: str) -> None:
    """Raise Conflict while a tenant is being erased."""
    if resources.tables.get_item(resources.settings.settings_table, _erasure_mark_partition(tenant), _SORT_KEY):
        text = f"Tenant {tenant!r} is being erased. Add it when that is done, about half an hour after the request."
        raise Conflict(text)


def _erasure_mark_partition(tenant: str) -> str:
    return f"erasing#{hashlib.sha256(tenant.encode()).hexdigest()}"
