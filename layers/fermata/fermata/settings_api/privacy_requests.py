"""Handle requests to export or erase (GDPR) the data of a conversation, a user or a tenant, or a content space."""

from fermata.aws import observability
from fermata.aws.clock import is_valid_id
from fermata.content.content_space import mark_space_deleted, parse_space_name, read_space
from fermata.domain.errors import InvalidRequest
from fermata.privacy.data_subject import DataSubject, SubjectKind
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.privacy_job import JobKind, create_privacy_job, get_privacy_job
from fermata.wire.bodies.requests import NewPrivacyJob
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import content, privacy

EXPORT_URL_SECONDS = 600
"""For as long an address opens a file without a token. Whoever shows the export again gets new ones."""
PRIVACY_ROUTES = Router("credentials")


@PRIVACY_ROUTES.handles(privacy.START_EXPORT)
def _start_export(context: RequestContext) -> Response:
    return _start_job(context, "export")


@PRIVACY_ROUTES.handles(privacy.START_ERASURE)
def _start_erasure(context: RequestContext) -> Response:
    return _start_job(context, "erasure")


@PRIVACY_ROUTES.handles(privacy.SHOW_ERASURE)
def _show_erasure(context: RequestContext) -> Response:
    job = get_privacy_job(context.resources, context.caller.tenant, context.path_parameters["id"], "erasure")
    return Response(200, {"job": job.to_view()})


@PRIVACY_ROUTES.handles(privacy.SHOW_EXPORT)
def _show_export(context: RequestContext) -> Response:
    """Respond with the export; its files can be downloaded when it is done."""
    job = get_privacy_job(context.resources, context.caller.tenant, context.path_parameters["id"], "export")
    blobs = context.resources.blobs
    urls = [blobs.presign_get(part, EXPORT_URL_SECONDS) for part in job.parts]
    return Response(200, {"job": job.to_view() | ({"downloads": urls} if urls else {})})


def _start_job(context: RequestContext, kind: JobKind) -> Response:
    """Store the job; the function `purge` does it. A log line says who asked, and not for whom."""
    body = context.parse_body(NewPrivacyJob)
    tenant = context.caller.tenant
    if body.tenant not in (None, tenant):
        raise InvalidRequest("'tenant' must be the name of your own tenant.")
    if body.conversation_id and not is_valid_id(body.conversation_id):
        raise InvalidRequest("'conversationId' is not the id of a conversation.")
    chosen: dict[SubjectKind, str | None] = {
        "conversation": body.conversation_id,
        "user": body.user_id,
        "tenant": body.tenant,
    }
    subject_kind, subject_id = next((name, value) for name, value in chosen.items() if value is not None)
    subject = DataSubject(kind=subject_kind, tenant=tenant, id=str(subject_id))
    job = create_privacy_job(context.resources, kind, subject)
    observability.log_audit_event(f"ai.data.{kind}", tenant=tenant, user=context.caller.user, job=job.id)
    return Response(202, {"job": job.to_view()})


@PRIVACY_ROUTES.handles(content.DELETE_SPACE)
def _delete_space(context: RequestContext) -> Response:
    """Let a space be found no more, and store the job that erases it. The function `purge` does it."""
    tenant = context.caller.tenant
    names = (context.path_parameters["site"], context.path_parameters["environment"])
    space = parse_space_name(tenant, "/".join(names))
    if context.request.query.get("confirm") != space.name:
        raise InvalidRequest(f"Deleting a space cannot be undone. Confirm it with ?confirm={space.name}")
    read_space(context.resources, space)
    # The job comes first: it hides the space itself, if this request dies in between.
    job = create_privacy_job(context.resources, "erasure", make_space_subject(space))
    mark_space_deleted(context.resources, space)
    observability.log_audit_event(
        "ai.content.space_deleted", tenant=tenant, user=context.caller.user, job=job.id, space=space.name
    )
    return Response(202, {"job": job.to_view()})
