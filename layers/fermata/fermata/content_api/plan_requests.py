"""Handle requests on the plan of a workspace, whose projects are content spaces."""

from fermata.content.media.media_room import MediaRoom
from fermata.content.model_store import list_open_forms
from fermata.content.space_members import list_seated_users
from fermata.domain.workspace_plan import PlanQuota
from fermata.limits.plan_usage import describe_plan_usage
from fermata.wire.auth.api_key_store import count_conversation_keys, list_api_keys
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def show_plan_usage(context: RequestContext) -> Response:
    """Respond with what the workspace has used of its plan."""
    resources, tenant = context.resources, context.caller.tenant
    counts = {
        PlanQuota.API_KEYS: lambda: count_conversation_keys(list_api_keys(resources, tenant)),
        PlanQuota.FORMS: lambda: len(list_open_forms(resources, tenant)),
        PlanQuota.MEDIA_BYTES: lambda: MediaRoom.open(resources, tenant).count_used(),
        PlanQuota.SEATS: lambda: len(list_seated_users(resources, tenant)),
    }
    plan = describe_plan_usage(resources, tenant, context.tenant.subscription, counts)
    return Response(200, plan, {"Cache-Control": "private, no-store"})
