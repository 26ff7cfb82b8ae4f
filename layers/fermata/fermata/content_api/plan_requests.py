"""Handle requests on the plan of a workspace, whose projects are content spaces."""

from fermata.limits.plan_usage import describe_plan_usage
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def show_plan_usage(context: RequestContext) -> Response:
    """Respond with what the workspace has used of its plan."""
    plan = describe_plan_usage(context.resources, context.caller.tenant, context.tenant.subscription)
    return Response(200, plan, {"Cache-Control": "private, no-store"})
