"""Store the jobs that export and erase data, in the settings table, so that they survive whoever runs them.

    privacy#open            <id>                   a job with something left to do, as the runner finds it
    privacy#<tenant hash>   <id>                   the job, with its progress and its receipt
    privacy#waiting         <hash of a request>    which job stands for this request until it begins (decision 0397)

No key names a person. The job itself names its subject while there is something left to do (decision 0257). An
export has until its files are deleted.
"""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from fermata.aws.clock import iso_from_epoch, new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.domain.base import RecordModel
from fermata.domain.errors import NotFound, TooManyRequests
from fermata.privacy.data_subject import DataSubject, make_erased_name
from fermata.wire.auth.tenant_erasure_mark import OPEN_JOBS_PARTITION, build_erasure_mark_put, hash_tenant_name

JobKind = Literal["export", "erasure"]
JobState = Literal["waiting", "running", "settling", "done", "expired"]
DeletionCause = Literal["age", "erasure"]
HasTime = Callable[[], bool]
MAX_OPEN_JOBS = 100
"""Jobs of a tenant that are not done. Each may read whole tables."""
_BUSY_SECONDS = 300
_WAITING_PARTITION = "privacy#waiting"
_MAX_CREATE_ATTEMPTS = 10


class PrivacyJob(RecordModel):
    """One export or erasure.

    Attributes:
        subject: Whose data it is; None when nothing is left to do, because the receipt names nobody.
        owner: The user whose conversation it is, once it is known.
        erased_name: What stands in the ledger for the subject.
        salt: Makes the erased names of a tenant's users; empty when the job is done.
        not_before: Epoch seconds before which nothing is to be done.
        counts: What was deleted, rewritten or exported so far, by kind. Repeated work is not counted twice.
        conversations: Conversations of the subject that were found, so that a second pass finds what came late.
        turns: The same of turns.
        position: Where the pass goes on: the table and the keys of a tenant's rows; else what was erased last.
        passes: How many passes of an erasure are done, or how often an export ran out of time.
        found: How much the current pass has found to delete.
        must_rebuild: Whether rollups still hold names that the ledger does not have any more.
        passed_at: ISO instant at which the first pass was done.
        parts: S3 keys of the parts of an export.
        deleted_because: Why the files of an export are gone; empty while they are there.
    """

    id: str
    kind: JobKind
    tenant_hash: str
    subject: DataSubject | None = None
    state: JobState = "waiting"
    owner: str = ""
    erased_name: str = ""
    salt: str = ""
    requested_at: str
    updated_at: str
    done_at: str | None = None
    not_before: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    conversations: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    position: tuple[str, ...] = ()
    passes: int = 0
    found: int = 0
    must_rebuild: bool = False
    passed_at: str = ""
    parts: tuple[str, ...] = ()
    deleted_because: DeletionCause | None = None
    version: int = 1

    def to_view(self) -> dict[str, Any]:
        """Return the job as clients see it. URLs of an export's parts are added by whoever may sign them."""
        view = {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "requestedAt": self.requested_at,
            "updatedAt": self.updated_at,
            "doneAt": self.done_at,
            "counts": self.counts,
        }
        view |= {"deletedBecause": self.deleted_because} if self.deleted_because else {}
        return view | ({"erasedName": self.erased_name} if self.erased_name else {})


def create_privacy_job(resources: Resources, kind: JobKind, subject: DataSubject) -> PrivacyJob:
    """Store a job for the next run. The caller has checked that it may be done.

    Args:
        kind: Whether to export or to erase.
        subject: The conversation, user or tenant whose data it is.

    Returns:
        The job, or an equal one that has not begun.

    Raises:
        TooManyRequests: The tenant has MAX_OPEN_JOBS that are not done.
        TransactionCanceled: Equal jobs have begun again and again meanwhile.
    """
    for attempt in range(_MAX_CREATE_ATTEMPTS):
        waiting = _read_waiting_job(resources, kind, subject)
        job = _find_job_of(resources, subject.tenant, waiting)
        if job is not None and job.state == "waiting":
            return job
        _check_open_jobs(resources, subject.tenant)
        job = _build_job(resources, kind, subject)
        try:
            resources.tables.write_items(*_build_creation(resources, job, kind, subject, waiting))
        except TransactionCanceled:  # an equal request at the same time has stored its job
            if attempt == _MAX_CREATE_ATTEMPTS - 1:
                raise
        else:
            return job
    raise AssertionError("unreachable")


def _read_waiting_job(resources: Resources, kind: JobKind, subject: DataSubject) -> str:
    """Return the id of the job that was the last one for this request and has not begun, as far as is known."""
    table = resources.settings.settings_table
    item = resources.tables.get_item(table, _WAITING_PARTITION, _hash_request(kind, subject))
    return str(item["job"]) if item else ""


def _find_job_of(resources: Resources, tenant: str, job_id: str) -> PrivacyJob | None:
    return _read_job(resources, hash_tenant_name(tenant), job_id) if job_id else None


def _check_open_jobs(resources: Resources, tenant: str) -> None:
    others = [job for job in list_open_jobs(resources, tenant) if job.state != "done"]
    if len(others) >= MAX_OPEN_JOBS:
        text = f"{MAX_OPEN_JOBS} exports and erasures of this tenant are not done yet. Ask again when some are."
        raise TooManyRequests(text, retry_after=_BUSY_SECONDS)


def _build_creation(
    resources: Resources, job: PrivacyJob, kind: JobKind, subject: DataSubject, waiting: str
) -> list[Put]:
    """Build the writes of a new job. `waiting` is the job that stood for the request when it was read."""
    table = resources.settings.settings_table
    pointer: Item = {"pk": OPEN_JOBS_PARTITION, "sk": job.id, "v": 1, "tenant_hash": job.tenant_hash}
    claim: Item = {"pk": _WAITING_PARTITION, "sk": _hash_request(kind, subject), "v": 1, "job": job.id}
    claim_put = (
        Put(table, claim, condition="attribute_not_exists(pk) OR job = :seen", values={":seen": waiting})
        if waiting
        else Put(table, claim, if_absent=True)
    )
    writes = [Put(table, _job_to_item(job), if_absent=True), Put(table, pointer, if_absent=True), claim_put]
    if kind == "erasure" and subject.kind == "tenant":
        writes.append(build_erasure_mark_put(resources, subject.tenant, job.id))
    return writes


def _hash_request(kind: JobKind, subject: DataSubject) -> str:
    request = json.dumps([kind, subject.tenant, subject.kind, subject.id])
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


def _build_job(resources: Resources, kind: JobKind, subject: DataSubject) -> PrivacyJob:
    now = iso_from_epoch(resources.clock.time())
    salt = secrets.token_hex(16)
    return PrivacyJob(
        id=new_id(),
        kind=kind,
        tenant_hash=hash_tenant_name(subject.tenant),
        subject=subject,
        erased_name=make_erased_name(salt, subject.id) if kind == "erasure" and subject.kind != "space" else "",
        salt=salt,
        requested_at=now,
        updated_at=now,
    )


def get_privacy_job(resources: Resources, tenant: str, job_id: str, kind: JobKind) -> PrivacyJob:
    """Return a job of a tenant.

    Args:
        tenant: The tenant's name.
        job_id: The id, as a client sent it.
        kind: The kind that the job has to have.

    Raises:
        NotFound: The tenant has no such job.
    """
    job = _read_job(resources, hash_tenant_name(tenant), job_id)
    if job is None or job.kind != kind:
        raise NotFound(f"The tenant has no such {kind}.")
    return job


def list_open_jobs(resources: Resources, tenant: str | None = None) -> list[PrivacyJob]:
    """Return the jobs that have something left to do: first what nobody has gone on with for the longest time.

    Args:
        tenant: Whose jobs; None for those of all tenants.
    """
    pointers = resources.tables.query_items(resources.settings.settings_table, OPEN_JOBS_PARTITION)
    own_hash = None if tenant is None else hash_tenant_name(tenant)
    wanted = [pointer for pointer in pointers if own_hash in (None, pointer["tenant_hash"])]
    found = (_read_job(resources, pointer["tenant_hash"], pointer["sk"]) for pointer in wanted)
    return sorted((job for job in found if job is not None), key=lambda job: (job.updated_at, job.id))


def save_privacy_job(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    """Store the progress of a job. When nothing is left to do, the runner does not find it any more.

    Raises:
        ConditionFailed: Another run has gone on with it.
    """
    table = resources.settings.settings_table
    saved = job.model_copy(update={"version": job.version + 1, "updated_at": iso_from_epoch(resources.clock.time())})
    put = Put(table, _job_to_item(saved), condition="version = :version", values={":version": job.version})
    try:
        resources.tables.write_items(put)
    except ConditionFailed as refused:
        if refused.item is None or PrivacyJob.from_row(refused.item) != saved:
            raise
    if saved.subject is None:
        close_privacy_job(resources, saved)
    elif job.state != "waiting":
        _forget_waiting_job(resources, saved, saved.subject)
    return saved


def _forget_waiting_job(resources: Resources, job: PrivacyJob, subject: DataSubject) -> None:
    """Delete the row that lets equal requests find a job, unless it leads to a later one. Idempotent."""
    delete = Delete(
        resources.settings.settings_table,
        _WAITING_PARTITION,
        _hash_request(job.kind, subject),
        condition="job = :job",
        values={":job": job.id},
    )
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(delete)


def close_privacy_job(resources: Resources, job: PrivacyJob) -> None:
    """Delete the row by which the runner finds a job with nothing left to do. Idempotent."""
    resources.tables.write_items(Delete(resources.settings.settings_table, OPEN_JOBS_PARTITION, job.id))


def add_counts(job: PrivacyJob, numbers: Mapping[str, int]) -> PrivacyJob:
    """Return the job with more of what it has done."""
    sums = {name: job.counts.get(name, 0) + number for name, number in numbers.items() if number}
    return job.model_copy(update={"counts": job.counts | sums})


def _read_job(resources: Resources, tenant_hash: str, job_id: str) -> PrivacyJob | None:
    item = resources.tables.get_item(resources.settings.settings_table, f"privacy#{tenant_hash}", job_id)
    return PrivacyJob.from_row(item) if item else None


def _job_to_item(job: PrivacyJob) -> Item:
    fields = job.model_dump(exclude_none=True)
    return {"pk": f"privacy#{job.tenant_hash}", "sk": job.id, "v": 1, **fields}
