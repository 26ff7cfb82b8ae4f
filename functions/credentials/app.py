"""Serve the settings of workspaces (`settings_api/`), requests to models without a turn, Git, and search."""

from fermata.aws.clock import new_id
from fermata.aws.resources import prepare_function
from fermata.limits.count_use import count_single_use
from fermata.limits.usage_counters import Use
from fermata.settings_api.agent_definition_requests import AGENT_DEFINITION_ROUTES
from fermata.settings_api.api_key_requests import API_KEY_ROUTES
from fermata.settings_api.connector_requests import CONNECTOR_ROUTES
from fermata.settings_api.credential_requests import CREDENTIAL_ROUTES
from fermata.settings_api.privacy_requests import PRIVACY_ROUTES
from fermata.settings_api.remote_tool_requests import REMOTE_TOOL_ROUTES
from fermata.settings_api.webhook_registration_requests import WEBHOOK_ROUTES
from fermata.wire.bodies.generate_requests import GenerateBody
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import content_forms, content_git, content_search, content_sync, generate, planner

router = Router("credentials")


@router.handles(generate.GENERATE)
def generate_without_conversation(context: RequestContext) -> Response:
    from fermata.turns.generate.answer_request import answer_generate_request  # few requests are of this kind

    body = context.parse_body(GenerateBody)
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), Use(prompts=1))
    return Response(200, answer_generate_request(context.resources, context.caller, body.to_generate_request()))


for routes in (
    CREDENTIAL_ROUTES,
    API_KEY_ROUTES,
    CONNECTOR_ROUTES,
    PRIVACY_ROUTES,
    REMOTE_TOOL_ROUTES,
    AGENT_DEFINITION_ROUTES,
    WEBHOOK_ROUTES,
):
    router.include(routes)
for operation, function in (
    *content_search.CONTENT_SEARCH_HANDLERS,
    *content_git.CONTENT_GIT_HANDLERS,
    *content_forms.CAPTCHA_HANDLERS,
):
    router.handles_by_path(operation, f"fermata.content_api.{function}")
router.handles_by_path(content_sync.SYNC_CONTENT, "fermata.client_protocols.content_sync:sync_content")
router.handles_by_path(planner.VARY_BLOCK, "fermata.planner_api.vary_block:vary_block")
router.handles_by_path(planner.STREAM_VARIATIONS, "fermata.planner_api.vary_block:stream_variations")

handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms")
