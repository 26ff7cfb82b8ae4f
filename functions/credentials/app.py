"""Store credentials, API keys, remote tools, and requests to export or erase data; list the models of credentials."""

from typing import Any

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.definitions import definition_store, tenant_secrets
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.files.bundle_store import PushedFile
from fermata.agents.policy_store import read_policy, to_policy_view
from fermata.aws import observability
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.resources import prepare_function
from fermata.client_protocols.conversation_keys import build_key_rules, change_key_rules
from fermata.content.content_space import mark_space_deleted, parse_space_name, read_space
from fermata.content.space_access import find_space_for_caller
from fermata.credentials import credential_store, initial_defaults, last_used, model_list
from fermata.domain.errors import InvalidRequest
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.limits.count_use import count_single_use
from fermata.limits.usage_counters import Use
from fermata.privacy.data_subject import DataSubject, SubjectKind
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.privacy_job import JobKind, create_privacy_job, get_privacy_job
from fermata.remote_tools import tool_registry
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.remote_tools.list_tool_views import list_tool_views
from fermata.turns.push_tenant_agents import AgentPush, parse_pushed_files, push_agents
from fermata.webhooks import redeliver_event, webhook_registry
from fermata.wire.auth import api_key_store, conversation_key_store, mcp_connector_store
from fermata.wire.auth.api_key import ServerApiKey
from fermata.wire.bodies.agent_requests import NewAgents, NewSecret
from fermata.wire.bodies.approval_requests import NewApprovalPolicy
from fermata.wire.bodies.find_pushed_folders import iter_pushed_folders
from fermata.wire.bodies.generate_requests import GenerateBody
from fermata.wire.bodies.requests import (
    ApiKeyRotation,
    CredentialChange,
    NewApiKey,
    NewConnector,
    NewCredential,
    NewPrivacyJob,
)
from fermata.wire.bodies.studio_requests import ApiKeyChange
from fermata.wire.bodies.tool_requests import BuiltInToolSettings, NewRemoteTool, RemoteToolChange
from fermata.wire.bodies.webhook_requests import NewWebhook, WebhookSettings
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import (
    agent_definitions,
    api_keys,
    content,
    content_forms,
    content_git,
    content_search,
    credentials,
    generate,
    mcp,
    planner,
    policies,
    privacy,
    remote_tools,
    webhooks,
)

EXPORT_URL_SECONDS = 600
"""For as long an address opens a file without a token. Whoever shows the export again gets new ones."""
router = Router("credentials")


@router.handles(credentials.LIST_CREDENTIALS)
def list_credentials(context: RequestContext) -> Response:
    return Response(200, {"credentials": last_used.list_credential_views(context.resources, context.caller)})


@router.handles(credentials.CREATE_CREDENTIAL)
def create_credential(context: RequestContext) -> Response:
    body = context.parse_body(NewCredential)
    credential = credential_store.create_credential(
        context.resources,
        context.caller,
        body.provider_id,
        body.auth_mode,
        body.display_label,
        body.api_key,
        body.base_url,
    )
    initial_defaults.set_missing_defaults(context.resources, context.caller, credential)
    return Response(201, {"credential": last_used.get_credential_view(context.resources, credential)})


@router.handles(credentials.SHOW_CREDENTIAL)
def show_credential(context: RequestContext) -> Response:
    credential = credential_store.get_own_credential(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"credential": last_used.get_credential_view(context.resources, credential)})


@router.handles(credentials.CHANGE_CREDENTIAL)
def change_credential(context: RequestContext) -> Response:
    body = context.parse_body(CredentialChange)
    credential = credential_store.update_credential(
        context.resources,
        context.caller,
        context.path_parameters["id"],
        body.display_label,
        body.api_key,
        body.base_url,
    )
    return Response(200, {"credential": last_used.get_credential_view(context.resources, credential)})


@router.handles(credentials.DELETE_CREDENTIAL)
def delete_credential(context: RequestContext) -> Response:
    credential_store.delete_credential(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@router.handles(credentials.TRY_CREDENTIAL)
def try_credential(context: RequestContext) -> Response:
    return Response(200, model_list.try_credential(context.resources, context.caller, context.path_parameters["id"]))


@router.handles(credentials.LIST_MODELS)
def list_models(context: RequestContext) -> Response:
    credential_id = context.request.query.get("credentialId")
    if not credential_id:
        raise InvalidRequest("Name the credential whose models you want: ?credentialId=…")
    models = model_list.list_credential_models(
        context.resources, context.caller, context.path_parameters["id"], credential_id
    )
    return Response(200, {"models": [model.to_wire() for model in models]})


@router.handles(api_keys.LIST_API_KEYS)
def list_api_keys(context: RequestContext) -> Response:
    tenant = context.caller.tenant
    keys = api_key_store.list_api_keys(context.resources, tenant)
    last_uses = api_key_store.read_last_uses(context.resources, tenant) if keys else {}
    return Response(200, {"apiKeys": [key.to_view(last_uses.get(key.id)) for key in keys]})


@router.handles(api_keys.CREATE_API_KEY)
def create_api_key(context: RequestContext) -> Response:
    body = context.parse_body(NewApiKey)
    resources, caller = context.resources, context.caller
    if body.conversation is not None:
        api_key_store.require_content_manager(caller)
        rules = build_key_rules(resources, caller.tenant, body.conversation)
        expires_in = body.expires_in_seconds
        made = conversation_key_store.create_conversation_key(
            resources, caller, body.label, rules, expires_in_seconds=expires_in
        )
        return _respond_with_key(201, *made)
    key, text = api_key_store.create_api_key(
        resources,
        caller,
        body.label,
        body.capabilities or (),
        scopes=body.scopes,
        expires_in_seconds=body.expires_in_seconds,
    )
    return _respond_with_key(201, key, text)


@router.handles(api_keys.CHANGE_API_KEY)
def change_api_key(context: RequestContext) -> Response:
    """Change label and rules of a key of the Conversation API."""
    body = context.parse_body(ApiKeyChange)
    resources, tenant, change = context.resources, context.caller.tenant, body.conversation
    key = conversation_key_store.change_conversation_key(
        resources,
        context.caller,
        context.path_parameters["id"],
        lambda rules: change_key_rules(resources, tenant, rules, change) if change else rules,
        label=body.label,
    )
    return Response(200, {"apiKey": key.to_view(None)})


@router.handles(api_keys.ROTATE_API_KEY)
def rotate_api_key(context: RequestContext) -> Response:
    body = context.parse_body(ApiKeyRotation) if context.request.body.strip() else ApiKeyRotation()
    key, text = api_key_store.rotate_api_key(
        context.resources, context.caller, context.path_parameters["id"], overlap_seconds=body.overlap_seconds
    )
    return _respond_with_key(200, key, text)


@router.handles(api_keys.REVOKE_API_KEY)
def revoke_api_key(context: RequestContext) -> Response:
    api_key_store.revoke_api_key(context.resources, context.caller.tenant, context.path_parameters["id"])
    return Response(200, {"ok": True})


@router.handles(mcp.LIST_CONNECTORS)
def list_connectors(context: RequestContext) -> Response:
    return Response(200, {"connectors": mcp_connector_store.list_connector_views(context.resources, context.caller)})


@router.handles(mcp.CREATE_CONNECTOR)
def create_connector(context: RequestContext) -> Response:
    body = context.parse_body(NewConnector)
    connector, token = mcp_connector_store.create_connector(
        context.resources,
        context.caller,
        body.label,
        body.type,
        body.capabilities,
        expires_in_seconds=None if body.ttl_days is None else body.ttl_days * 86_400,
        space=_find_connector_space(context, body),
    )
    return Response(201, {"connector": connector.to_view(None), "token": token})


def _find_connector_space(context: RequestContext, body: NewConnector) -> str:
    """Return the name of the space that a connector names, if what it is allowed lets it read the space."""
    if body.space is None:
        return ""
    capabilities = context.caller.capabilities & frozenset(body.capabilities)
    allowed = context.caller.model_copy(update={"capabilities": capabilities})
    return find_space_for_caller(context.resources, allowed, body.space)[0].name


@router.handles(mcp.REVOKE_CONNECTOR)
def revoke_connector(context: RequestContext) -> Response:
    mcp_connector_store.revoke_connector(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"revoked": True})


@router.handles(privacy.START_EXPORT)
def start_export(context: RequestContext) -> Response:
    return _start_job(context, "export")


@router.handles(privacy.START_ERASURE)
def start_erasure(context: RequestContext) -> Response:
    return _start_job(context, "erasure")


@router.handles(privacy.SHOW_ERASURE)
def show_erasure(context: RequestContext) -> Response:
    job = get_privacy_job(context.resources, context.caller.tenant, context.path_parameters["id"], "erasure")
    return Response(200, {"job": job.to_view()})


@router.handles(privacy.SHOW_EXPORT)
def show_export(context: RequestContext) -> Response:
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


@router.handles(content.DELETE_SPACE)
def delete_space(context: RequestContext) -> Response:
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


def _respond_with_key(status: int, key: ServerApiKey, text: str) -> Response:
    """Respond with a key and its text, which is not shown again."""
    return Response(status, {"apiKey": key.to_view(None), "key": text})


@router.handles(remote_tools.LIST_REMOTE_TOOLS)
def list_remote_tools(context: RequestContext) -> Response:
    return Response(200, {"tools": list_tool_views(context.resources, context.caller.tenant)})


@router.handles(remote_tools.REGISTER_REMOTE_TOOL)
def register_remote_tool(context: RequestContext) -> Response:
    body = context.parse_body(NewRemoteTool)
    stored = tool_registry.register_tool(
        context.resources,
        context.caller,
        body.manifest,
        body.endpoint,
        headers=body.static_headers,
        scopes=body.scopes or (),
        forwards_authorization=body.forward_authorization,
        replace=body.replace,
    )
    return Response(201, _to_tool_body(stored))


@router.handles(remote_tools.CHANGE_REMOTE_TOOL)
def change_remote_tool(context: RequestContext) -> Response:
    body = context.parse_body(RemoteToolChange)
    change = tool_registry.ToolChange(body.enabled, body.static_headers, body.rotate_signing_secret)
    name = context.path_parameters["name"]
    return Response(200, _to_tool_body(tool_registry.change_tool(context.resources, context.caller, name, change)))


@router.handles(remote_tools.TURN_ON_BUILT_IN_TOOL)
def turn_on_tool(context: RequestContext) -> Response:
    body = context.parse_body(BuiltInToolSettings)
    name = context.path_parameters["name"]
    stored = turn_on_built_in_tool(
        context.resources, context.caller, name, api_key=body.api_key, options=body.options or {}
    )
    return Response(200, _to_tool_body(stored))


@router.handles(remote_tools.REMOVE_REMOTE_TOOL)
def remove_remote_tool(context: RequestContext) -> Response:
    tool_registry.remove_tool(context.resources, context.caller, context.path_parameters["name"])
    return Response(200, {"ok": True})


@router.handles(agent_definitions.LIST_AGENT_DEFINITIONS)
def list_agent_definitions(context: RequestContext) -> Response:
    return Response(200, definition_store.list_definition_views(context.resources, context.caller.tenant))


@router.handles(agent_definitions.PUSH_AGENTS)
def put_agents(context: RequestContext) -> Response:
    body = context.parse_body(NewAgents)
    if not body.dry_run:
        _count(context, Use(stored_bytes=len(context.request.body)))
    folders: dict[str, tuple[PushedFile, ...]] = {}
    for name, files in iter_pushed_folders(context.resources, context.caller, body):
        parsed = parse_pushed_files([file.model_dump(by_alias=True) for file in files])
        folders[name] = (*folders.get(name, ()), *parsed)
    push = AgentPush(
        documents=tuple(SourceDocument(file.name, to_storable_json(file.content), file.lines) for file in body.files),
        folders=folders,
        expected_version=body.version,
        dry_run=body.dry_run,
    )
    pushed = push_agents(context.resources, context.caller, push)
    return Response(200, pushed.to_view())


@router.handles(agent_definitions.SHOW_AGENT_DEFINITION)
def show_agent_definition(context: RequestContext) -> Response:
    agent_id = context.path_parameters["id"]
    return Response(200, definition_store.get_definition_view(context.resources, context.caller.tenant, agent_id))


@router.handles(agent_definitions.REMOVE_AGENT_DEFINITION)
def remove_agent_definition(context: RequestContext) -> Response:
    definition_store.remove_agent(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@router.handles(agent_definitions.LIST_SECRETS)
def list_secrets(context: RequestContext) -> Response:
    return Response(200, {"secrets": tenant_secrets.list_secret_views(context.resources, context.caller.tenant)})


@router.handles(agent_definitions.SET_SECRET)
def put_secret(context: RequestContext) -> Response:
    body = context.parse_body(NewSecret)
    name = context.path_parameters["name"]
    return Response(200, {"secret": tenant_secrets.set_secret(context.resources, context.caller, name, body.value)})


@router.handles(agent_definitions.REMOVE_SECRET)
def delete_secret(context: RequestContext) -> Response:
    tenant_secrets.remove_secret(context.resources, context.caller, context.path_parameters["name"])
    return Response(200, {"ok": True})


@router.handles(policies.SHOW_POLICY)
def show_approval_policy(context: RequestContext) -> Response:
    return Response(200, to_policy_view(read_policy(context.resources, context.caller.tenant)))


@router.handles(policies.SET_POLICY)
def set_approval_policy(context: RequestContext) -> Response:
    from fermata.turns.approvals.set_tenant_policy import set_tenant_policy  # imported here: policies seldom change

    policy = ApprovalPolicy.from_wire(context.parse_body(NewApprovalPolicy).model_dump(by_alias=True))
    return Response(200, set_tenant_policy(context.resources, context.caller, policy))


@router.handles(webhooks.LIST_WEBHOOKS)
def list_webhooks(context: RequestContext) -> Response:
    return Response(200, {"webhooks": webhook_registry.list_webhooks(context.resources, context.caller.tenant)})


@router.handles(webhooks.ADD_WEBHOOK)
def add_webhook(context: RequestContext) -> Response:
    body = context.parse_body(NewWebhook)
    stored = webhook_registry.add_webhook(
        context.resources, context.caller, body.url, body.events or (), may_answer=body.may_answer
    )
    return Response(201, {"webhook": stored.view, "signingSecret": stored.signing_secret})


@router.handles(webhooks.CHANGE_WEBHOOK)
def change_webhook(context: RequestContext) -> Response:
    body = context.parse_body(WebhookSettings)
    change = webhook_registry.WebhookChange(body.url, body.events, body.enabled, body.may_answer)
    stored = webhook_registry.change_webhook(context.resources, context.caller, context.path_parameters["id"], change)
    return Response(200, {"webhook": stored.view})


@router.handles(webhooks.REMOVE_WEBHOOK)
def remove_webhook(context: RequestContext) -> Response:
    webhook_registry.remove_webhook(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@router.handles(webhooks.LIST_DELIVERIES)
def list_deliveries(context: RequestContext) -> Response:
    found = redeliver_event.list_webhook_deliveries(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"deliveries": found})


@router.handles(webhooks.REDELIVER)
def redeliver(context: RequestContext) -> Response:
    parameters = context.path_parameters
    redeliver_event.redeliver_event(context.resources, context.caller, parameters["id"], parameters["deliveryId"])
    return Response(202, {"ok": True})


def _count(context: RequestContext, use: Use) -> None:
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), use)


def _to_tool_body(stored: tool_registry.StoredTool) -> dict[str, Any]:
    secret = {"signingSecret": stored.signing_secret} if stored.signing_secret else {}
    return {"tool": stored.view} | secret


@router.handles(generate.GENERATE)
def generate_without_conversation(context: RequestContext) -> Response:
    from fermata.turns.generate.answer_request import answer_generate_request  # few requests are of this kind

    body = context.parse_body(GenerateBody)
    _count(context, Use(prompts=1))
    return Response(200, answer_generate_request(context.resources, context.caller, body.to_generate_request()))


for operation, function in (
    *content_search.CONTENT_SEARCH_HANDLERS,
    *content_git.CONTENT_GIT_HANDLERS,
    *content_forms.CAPTCHA_HANDLERS,
):
    router.handles_by_path(operation, f"fermata.content_api.{function}")
router.handles_by_path(planner.VARY_BLOCK, "fermata.planner_api.vary_block:vary_block")
router.handles_by_path(planner.STREAM_VARIATIONS, "fermata.planner_api.vary_block:stream_variations")

handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms")
