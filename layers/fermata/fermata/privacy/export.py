"""Export a conversation, a user or a tenant as files of NDJSON in the bucket (decision 0257).

A line is `{"table", "row"}`, or `{"blob", "base64"}` for what a row keeps in the bucket. Secrets are left out: sealed
keys, hashes of API keys, and the tokens of callbacks. A run that is stopped begins again, and writes the same files.
They are deleted after a day, or when data is erased that may be in them.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fermata.aws import observability
from fermata.aws.blob_store import (
    STORED_FOLDERS,
    conversation_folder,
    earlier_prompts_folder,
    snapshots_folder,
    turn_folder,
)
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.aws.uploads import upload_folder
from fermata.conversations.message_store import conversation_partition
from fermata.privacy.content_authors import iter_content_rows_by
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.find_subject_rows import (
    iter_conversations,
    iter_ledger_rows,
    iter_settings_by_user,
    list_bridges_partitions_of_user,
    list_turns_of_conversation,
    list_user_rows_of_conversation,
)
from fermata.privacy.privacy_job import DeletionCause, HasTime, PrivacyJob, list_open_jobs, save_privacy_job
from fermata.privacy.trail_names import iter_trail_entries_of
from fermata.turns.prompt_queue.queued_prompt import queue_partition
from fermata.turns.turn import build_turn_pk
from fermata.usage.audit.user_labels import labels_partition

MAX_PART_BYTES = 16 * 1024 * 1024
"""Of a part before it is compressed; a line may exceed it."""
EXPORT_SECONDS = 86_400
"""How long the files of an export are kept."""
_RETRY_SECONDS = 300
_EXPORTS_FOLDER = "exports"
_SECRET_ATTRIBUTES = frozenset({"token", "sealed_key", "secrets", "sealed", "kms_key_id"})
_ABOUT_OTHERS = frozenset({"users", "lifted"})
"""Attributes of a setting that name other users than the one who entered it."""
Line = dict[str, Any]


def run_export(resources: Resources, job: PrivacyJob, has_time: HasTime) -> PrivacyJob:
    """Write the files of an export, and make the job a list of them. When they are a day old, delete them.

    Raises:
        ConditionFailed: Another run has gone on with the job.
    """
    subject = job.subject
    assert subject is not None
    if job.state == "done":
        return _expire_export(resources, job, subject.tenant, "age")
    job = save_privacy_job(resources, job.model_copy(update={"state": "running"}))
    folder = _export_folder(subject.tenant, job.id)
    parts: list[str] = []
    lines = 0
    for body, count in _iter_parts(iter_export_lines(resources, subject)):
        if parts and not has_time():
            return _postpone_export(resources, job)
        key = f"{folder}/part-{len(parts) + 1:04d}.ndjson.gz"
        resources.blobs.put_file(key, gzip.compress(body, mtime=0), "application/gzip")
        parts.append(key)
        lines += count
    now = resources.clock.time()
    done = {"state": "done", "done_at": iso_from_epoch(now), "not_before": int(now) + EXPORT_SECONDS, "salt": ""}
    return save_privacy_job(
        resources, job.model_copy(update={**done, "parts": tuple(parts), "counts": {"lines": lines}})
    )


def _postpone_export(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    """Let an export that ran out of time wait, twice as long after each try: it may never fit into a function."""
    seconds = min(_RETRY_SECONDS * 2**job.passes, EXPORT_SECONDS)
    observability.log_warning("privacy.export_out_of_time", job=job.id, tries=job.passes + 1, retry_after=seconds)
    update = {"passes": job.passes + 1, "not_before": int(resources.clock.time()) + seconds}
    return save_privacy_job(resources, job.model_copy(update=update))


def expire_exports(resources: Resources, erased: DataSubject) -> None:
    """Delete the files of exports that may hold data of a subject that is erased."""
    for job in list_open_jobs(resources, erased.tenant):
        # What is running now is done before the second pass. A tenant that is erased needs none of its exports.
        is_wanted = job.kind == "export" and (job.state == "done" or erased.kind == "tenant")
        if is_wanted and job.subject is not None and _may_overlap(job.subject, erased):
            _expire_export(resources, job, erased.tenant, "erasure")


def _may_overlap(one: DataSubject, other: DataSubject) -> bool:
    return one.kind != other.kind or one.id == other.id


def _expire_export(resources: Resources, job: PrivacyJob, tenant: str, cause: DeletionCause) -> PrivacyJob:
    resources.blobs.erase_folder(_export_folder(tenant, job.id))
    expired = {"state": "expired", "subject": None, "salt": "", "parts": (), "deleted_because": cause}
    return save_privacy_job(resources, job.model_copy(update=expired))


def _export_folder(tenant: str, job_id: str) -> str:
    return f"{_EXPORTS_FOLDER}/{tenant}/{job_id}"


def iter_export_lines(resources: Resources, subject: DataSubject) -> Iterator[Line]:
    """Yield everything that is stored about a subject."""
    if subject.kind == "tenant":
        yield from _iter_tenant(resources, subject.tenant)
        return
    turns: dict[str, None] = {}
    for conversation in iter_conversations(resources, subject):
        of_conversation = list_turns_of_conversation(resources, subject.tenant, conversation["id"])
        turns |= dict.fromkeys(of_conversation)
        yield from _iter_conversation(resources, subject.tenant, conversation["id"])
        if subject.kind == "conversation":
            folder = snapshots_folder(subject.tenant, conversation["user"])
            for sent_for in (conversation["id"], *of_conversation):
                yield from _iter_blobs(resources, f"{folder}/{sent_for}")
            yield from _iter_user_rows_of(resources, conversation)
    for row in iter_ledger_rows(resources, subject):
        turns[row["turn"]] = None
        yield _to_line("usage", row)
    for turn in turns:
        yield from _iter_turn(resources, subject.tenant, turn)
    if subject.kind == "user":
        yield from _iter_user_rows(resources, subject)


def _iter_conversation(resources: Resources, tenant: str, conversation: str) -> Iterator[Line]:
    pk = conversation_partition(tenant, conversation)
    rows = resources.tables.query_items(resources.settings.conversations_table, pk)
    yield from (_to_line("conversations", row) for row in rows)
    waiting = resources.tables.query_items(resources.settings.bridges_table, queue_partition(tenant, conversation))
    yield from (_to_line("bridges", row) for row in waiting)
    yield from _iter_blobs(resources, conversation_folder(tenant, conversation))
    yield from _iter_blobs(resources, earlier_prompts_folder(tenant, conversation))


def _iter_user_rows_of(resources: Resources, conversation: Item) -> Iterator[Line]:
    places = list_user_rows_of_conversation(conversation["tenant"], conversation["id"], conversation["user"])
    for partition, prefix in places:
        rows = resources.tables.query_items(
            resources.settings.bridges_table, partition, min_sk=prefix, max_sk=f"{prefix}~"
        )
        yield from (_to_line("bridges", row) for row in rows)


def _iter_turn(resources: Resources, tenant: str, turn: str) -> Iterator[Line]:
    rows = resources.tables.query_items(resources.settings.bridges_table, build_turn_pk(tenant, turn))
    yield from (_to_line("bridges", row) for row in rows)
    yield from _iter_blobs(resources, turn_folder(tenant, turn))


def _iter_user_rows(resources: Resources, subject: DataSubject) -> Iterator[Line]:
    usage = _tables(resources)["usage"]
    for row in resources.tables.query_items(usage, labels_partition(subject.tenant)):
        if row["user"] == subject.id:
            yield _to_line("usage", row)
    for partition in list_bridges_partitions_of_user(subject):
        rows = resources.tables.query_items(_tables(resources)["bridges"], partition)
        yield from (_to_line("bridges", row) for row in rows)
    for row in iter_settings_by_user(resources, subject):
        yield _to_line("settings", {name: value for name, value in row.items() if name not in _ABOUT_OTHERS})
    for entry in iter_trail_entries_of(resources, subject.tenant, subject.id):
        yield _to_line("bridges", entry)
    yield from _iter_own_budget(resources, subject)
    yield from _iter_own_content(resources, subject)
    yield from _iter_blobs(resources, upload_folder(subject.tenant, subject.id))
    yield from _iter_blobs(resources, snapshots_folder(subject.tenant, subject.id))


def _iter_own_content(resources: Resources, subject: DataSubject) -> Iterator[Line]:
    for row in iter_content_rows_by(resources, subject):
        yield _to_line("content", row)
        if "blob" in row:
            yield _to_blob_line(resources, row["blob"])


def _iter_own_budget(resources: Resources, subject: DataSubject) -> Iterator[Line]:
    """Yield the user's own limits of the row that holds those of all users."""
    row = resources.tables.get_item(_tables(resources)["settings"], f"t#{subject.tenant}", "budgets") or {}
    if subject.id in row.get("users", {}):
        own = {"pk": row["pk"], "sk": row["sk"], "users": {subject.id: row["users"][subject.id]}}
        yield _to_line("settings", own)


def _iter_tenant(resources: Resources, tenant: str) -> Iterator[Line]:
    for name, table in _tables(resources).items():
        start = None
        while True:
            rows, start = resources.tables.scan_page(table, start)
            own = (row for row in rows if row["pk"] == f"t#{tenant}" or row["pk"].startswith(f"t#{tenant}#"))
            yield from (_to_line(name, row) for row in own)
            if start is None:
                break
    for folder in STORED_FOLDERS:
        if folder != _EXPORTS_FOLDER:
            yield from _iter_blobs(resources, f"{folder}/{tenant}")


def _iter_blobs(resources: Resources, folder: str) -> Iterator[Line]:
    for key in resources.blobs.list_keys(folder):
        yield _to_blob_line(resources, key)


def _to_blob_line(resources: Resources, key: str) -> Line:
    return {"blob": key, "base64": base64.b64encode(resources.blobs.get_bytes(key)).decode()}


def _tables(resources: Resources) -> dict[str, str]:
    settings = resources.settings
    return {
        "conversations": settings.conversations_table,
        "bridges": settings.bridges_table,
        "usage": settings.usage_table,
        "settings": settings.settings_table,
        "content": settings.content_table,
    }


def _to_line(table: str, row: Item) -> Line:
    shown = _without_secrets(row)
    if row["sk"].startswith("p#") and "data" in row:  # a pause, whose token is a member of a packed attribute
        shown["data"] = _without_secrets(json.loads(row["data"]))
    return {"table": table, "row": shown}


def _without_secrets(values: Item) -> Item:
    return {name: value for name, value in values.items() if name not in _SECRET_ATTRIBUTES}


def _iter_parts(lines: Iterator[Line]) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each part, and its number of lines. There is at least one part."""
    part, count = bytearray(), 0
    for line in lines:
        part += json.dumps(line, ensure_ascii=False, default=_to_json_value).encode("utf-8", "replace") + b"\n"
        count += 1
        if len(part) >= MAX_PART_BYTES:
            yield bytes(part), count
            part, count = bytearray(), 0
    yield bytes(part), count


def _to_json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return base64.b64encode(bytes(value)).decode()
