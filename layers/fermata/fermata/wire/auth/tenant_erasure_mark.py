"""Mark the name of a tenant that is being erased, so that nobody adds it again before that is done (decision 0265).

    erasing#<sha256 of the name>    <id of the erasure>

A late copy of a delete, or the last pass of the erasure, would hit the new tenant. Each erasure has a mark of its own,
because several may go on at once, and because a late copy of a removal must not remove the mark of a later one.

Marks of an earlier form have the sort key `tenant`, and no erasure removes them any more. Such a mark counts while the
tenant has an export or an erasure that is not done, and is removed by whoever finds that it has none.
"""

import hashlib

from fermata.aws.dynamodb_items_and_writes import Delete, Put
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict

OPEN_JOBS_PARTITION = "privacy#open"
"""The partition of the jobs that export and erase data, and are not done (privacy/privacy_job.py)."""
_EARLIER_SORT_KEY = "tenant"


def build_erasure_mark_put(resources: Resources, tenant: str, job_id: str) -> Put:
    """Build the write that marks a tenant as being erased, so that its name is not given to another.

    Args:
        tenant: The tenant's name.
        job_id: The erasure that is to begin.
    """
    item = {"pk": _erasure_mark_partition(tenant), "sk": job_id, "v": 1}
    return Put(resources.settings.settings_table, item, if_absent=True)


def build_erasure_mark_delete(resources: Resources, tenant: str, job_id: str) -> Delete:
    """Build the write that removes the mark of one erasure.

    Args:
        tenant: The tenant's name.
        job_id: The erasure that is done.
    """
    return Delete(resources.settings.settings_table, _erasure_mark_partition(tenant), job_id)


def check_tenant_is_not_erased(resources: Resources, tenant: str) -> None:
    """Raise Conflict while a tenant is being erased."""
    table, partition = resources.settings.settings_table, _erasure_mark_partition(tenant)
    marks = {row["sk"] for row in resources.tables.query_items(table, partition)}
    if marks == {_EARLIER_SORT_KEY} and not _has_open_job(resources, tenant):
        resources.tables.write_items(Delete(table, partition, _EARLIER_SORT_KEY))
    elif marks:
        text = f"Tenant {tenant!r} is being erased. Add it when that is done, about half an hour after the request."
        raise Conflict(text)


def hash_tenant_name(tenant: str) -> str:
    """Return what stands for a tenant in the rows of its exports and erasures."""
    return hashlib.sha256(tenant.encode()).hexdigest()[:32]


def _has_open_job(resources: Resources, tenant: str) -> bool:
    jobs = resources.tables.query_items(resources.settings.settings_table, OPEN_JOBS_PARTITION)
    return any(job["tenant_hash"] == hash_tenant_name(tenant) for job in jobs)


def _erasure_mark_partition(tenant: str) -> str:
    return f"erasing#{hashlib.sha256(tenant.encode()).hexdigest()}"
