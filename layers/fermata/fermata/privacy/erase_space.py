"""Erase a content space: its rows, with all versions, tokens and its index, then its vectors and files (decision 0454).

Its name is taken until the job is done, because later passes delete what late writers have stored under it.
"""

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, forget_deleted_space, mark_space_deleted, parse_space_name
from fermata.content.search.bucket_vectors import build_vector_key_prefix
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.privacy_job import HasTime, PrivacyJob, add_counts

ROWS_AT_ONCE = 500


def make_space_subject(space: SpaceKey) -> DataSubject:
    """Return a space as the subject of an erasure."""
    return DataSubject(kind="space", tenant=space.tenant, id=space.name)


def erase_space(resources: Resources, job: PrivacyJob, has_time: HasTime) -> tuple[PrivacyJob, bool]:
    """Erase what is stored of a space. It may run again, also in the middle of itself: it deletes what it finds.

    Returns:
        The job, and whether everything was done before the time was over.
    """
    space = _open_subject(job)
    table = resources.settings.content_table
    mark_space_deleted(resources, space)
    while rows := resources.tables.query_items(table, space.pk, limit=ROWS_AT_ONCE, attributes=("pk", "sk")):
        resources.tables.batch_delete(table, [(row["pk"], row["sk"]) for row in rows])
        job = _count(job, rows=len(rows))
        if not has_time():
            return job, False
    if resources.settings.vector_bucket_arn:
        for vectors in resources.vector_bucket.delete_keys_under(space.tenant, build_vector_key_prefix(space)):
            job = _count(job, vectors=vectors)
            if not has_time():
                return job, False
    return _count(job, objects=resources.blobs.erase_folder(space.folder)), True


def finish_space_erasure(resources: Resources, job: PrivacyJob) -> None:
    """Let the name of an erased space be used again."""
    forget_deleted_space(resources, _open_subject(job))


def _open_subject(job: PrivacyJob) -> SpaceKey:
    assert job.subject is not None
    return parse_space_name(job.subject.tenant, job.subject.id)


def _count(job: PrivacyJob, **numbers: int) -> PrivacyJob:
    return add_counts(job, numbers).model_copy(update={"found": job.found + sum(numbers.values())})
