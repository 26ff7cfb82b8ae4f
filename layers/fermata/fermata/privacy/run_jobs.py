"""Go on with the exports and erasures that are open, as the schedule and the operator's command do."""

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed
from fermata.aws.resources import Resources
from fermata.privacy.erasure import run_erasure
from fermata.privacy.export import run_export
from fermata.privacy.privacy_job import HasTime, PrivacyJob, close_privacy_job, list_open_jobs


def run_open_jobs(
    resources: Resources, has_time: HasTime = lambda: True, *, includes_postponed_exports: bool = False
) -> int:
    """Go on with every open job that is due, until the time is over. A failure does not stop the others.

    Args:
        includes_postponed_exports: Also go on with exports that ran out of time, and wait longer after each try.

    Returns:
        How many jobs were gone on with.
    """
    run = 0
    for job in list_open_jobs(resources):
        if job.subject is None:  # an earlier run was stopped right after its last write
            close_privacy_job(resources, job)
        elif (_is_due(resources, job) or (includes_postponed_exports and _is_postponed_export(job))) and has_time():
            _run_job(resources, job, has_time)
            run += 1
    return run


def _is_due(resources: Resources, job: PrivacyJob) -> bool:
    return job.not_before <= resources.clock.time()


def _is_postponed_export(job: PrivacyJob) -> bool:
    return job.kind == "export" and job.state == "running"


def _run_job(resources: Resources, job: PrivacyJob, has_time: HasTime) -> None:
    """Go on with one job. A failure is logged with its traceback; the next run tries again."""
    try:
        after = (run_export if job.kind == "export" else run_erasure)(resources, job, has_time)
    except ConditionFailed:
        observability.log_event("privacy.job_taken", job=job.id, kind=job.kind)  # another run goes on with it
        return
    except Exception:  # noqa: BLE001 - logged with its traceback; the next run goes on
        observability.log_exception("privacy.job_failed", job=job.id, kind=job.kind)
        return
    observability.log_event("privacy.job", job=job.id, kind=job.kind, state=after.state, counts=after.counts)
