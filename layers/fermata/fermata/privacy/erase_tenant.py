"""Erase a tenant: who it is first, then its turns, rows, vectors and blobs. Its ledger goes on under a pseudonym.

Rows are found by scanning every table, because no index lists all of them. A scan goes on where the last run stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from fermata.aws import observability
from fermata.aws.blob_store import STORED_FOLDERS
from fermata.aws.dynamodb_items_and_writes import Delete, Item
from fermata.aws.resources import Resources
from fermata.privacy.erase_content import erase_partition, erase_turn
from fermata.privacy.ledger_pseudonyms import copy_to_erased_tenant
from fermata.privacy.privacy_job import HasTime, PrivacyJob, add_counts
from fermata.turns.turn import build_turn_pk
from fermata.usage.ledger.ledger_store import is_ledger_row
from fermata.wire.auth.tenant_store import list_tenant_index_keys

SaveJob = Callable[[PrivacyJob], PrivacyJob]


def erase_tenant(resources: Resources, job: PrivacyJob, save: SaveJob, has_time: HasTime) -> tuple[PrivacyJob, bool]:
    """Erase what is stored of a tenant.

    Returns:
        The job, and whether everything was done before the time was over.
    """
    assert job.subject is not None
    tenant = job.subject.tenant
    if _is_registered_again(resources, job, tenant):
        observability.log_warning("privacy.tenant_registered_again", job=job.id)
        return job, True
    if not job.position:
        job = save(add_counts(job, _erase_registration(resources, tenant)))
    last_partition = ""
    for table, row, position in _iter_rows(resources, tenant, job.position):
        if row is not None and row["pk"] != last_partition:
            counts = _erase_row(resources, job, table, row)
            job = add_counts(job, counts).model_copy(update={"found": job.found + counts.total()})
            # The rows of a turn were erased together, because its log has to be there while it is ended.
            last_partition = row["pk"] if _find_turn_id(resources, tenant, table, row) else ""
        if position != job.position:
            job = save(job.model_copy(update={"position": position}))
        if not has_time():
            return save(job), False
    if resources.settings.vector_bucket_arn:
        indexes = resources.vector_bucket.delete_tenant(tenant)
        job = add_counts(job, {"vector_indexes": indexes}).model_copy(update={"found": job.found + indexes})
    objects = sum(resources.blobs.erase_folder(f"{folder}/{tenant}") for folder in STORED_FOLDERS)
    return save(add_counts(job, {"objects": objects}).model_copy(update={"position": ()})), True


def _is_registered_again(resources: Resources, job: PrivacyJob, tenant: str) -> bool:
    """Return whether an operator has added a tenant of this name since the erasure was requested."""
    row = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", "tenant")
    return row is not None and row["created_at"] > job.requested_at


def _erase_registration(resources: Resources, tenant: str) -> Counter[str]:
    """Delete what admits the tenant's callers, before anything else: issuer, origins, keys, and last its own row."""
    table = resources.settings.settings_table
    row = resources.tables.get_item(table, f"t#{tenant}", "tenant")
    if row is not None:
        for pk, sk in list_tenant_index_keys(row):
            resources.tables.write_items(Delete(table, pk, sk))
    rows = erase_partition(resources, table, f"t#{tenant}#apikeys")
    rows += erase_partition(resources, table, f"t#{tenant}", lambda sort_key: sort_key != "tenant")
    rows += erase_partition(resources, table, f"t#{tenant}")
    return Counter(rows=rows)


def _iter_rows(
    resources: Resources, tenant: str, position: tuple[str, ...]
) -> Iterator[tuple[str, Item | None, tuple[str, ...]]]:
    """Yield the tenant's rows of every table, and after each page None, with the position that is reached."""
    settings = resources.settings
    tables = [settings.bridges_table, settings.conversations_table, settings.usage_table, settings.settings_table]
    tables.append(settings.content_table)
    begin = tables.index(position[0]) if position else 0
    start = (position[1], position[2]) if len(position) == 3 else None
    for table in tables[begin:]:
        while True:
            rows, next_start = resources.tables.scan_page(table, start)
            reached = (table, *start) if start else (table,)
            own = (row for row in rows if row["pk"] == f"t#{tenant}" or row["pk"].startswith(f"t#{tenant}#"))
            yield from ((table, row, reached) for row in own)
            start = next_start
            if start is None:
                break
            yield table, None, (table, *start)


def _erase_row(resources: Resources, job: PrivacyJob, table: str, row: Item) -> Counter[str]:
    assert job.subject is not None
    if turn_id := _find_turn_id(resources, job.subject.tenant, table, row):
        return erase_turn(resources, job.subject.tenant, turn_id)
    counts: Counter[str] = Counter(rows=1, conversations=int(_is_conversation(resources, table, row)))
    if table == resources.settings.usage_table and is_ledger_row(row):
        copy_to_erased_tenant(resources, row, job.erased_name, job.salt)
        counts["ledger_rows"] = 1
    resources.tables.batch_delete(table, [(row["pk"], row["sk"])])
    return counts


def _find_turn_id(resources: Resources, tenant: str, table: str, row: Item) -> str:
    """Return the id of the turn that a row belongs to, or nothing. Users choose what else is in a key."""
    partition, beginning = row["pk"], build_turn_pk(tenant, "")
    is_of_turn = table == resources.settings.bridges_table and partition.startswith(beginning)
    return str(partition.removeprefix(beginning)) if is_of_turn else ""


def _is_conversation(resources: Resources, table: str, row: Item) -> bool:
    return table == resources.settings.conversations_table and row["sk"] == "meta"
