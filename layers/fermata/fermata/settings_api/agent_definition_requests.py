"""Handle requests on the agents that a tenant pushes, the secrets that they name, and the policy of approvals."""

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.definitions import definition_store, tenant_secrets
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.files.bundle_store import PushedFile
from fermata.agents.policy_store import read_policy, to_policy_view
from fermata.aws.clock import new_id
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.limits.count_use import count_single_use
from fermata.limits.usage_counters import Use
from fermata.turns.push_tenant_agents import AgentPush, parse_pushed_files, push_agents
from fermata.wire.bodies.agent_requests import NewAgents, NewSecret
from fermata.wire.bodies.approval_requests import NewApprovalPolicy
from fermata.wire.bodies.find_pushed_folders import iter_pushed_folders
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import agent_definitions, policies

AGENT_DEFINITION_ROUTES = Router("credentials")


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.LIST_AGENT_DEFINITIONS)
def _list_agent_definitions(context: RequestContext) -> Response:
    return Response(200, definition_store.list_definition_views(context.resources, context.caller.tenant))


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.PUSH_AGENTS)
def _put_agents(context: RequestContext) -> Response:
    body = context.parse_body(NewAgents)
    if not body.dry_run:
        use = Use(stored_bytes=len(context.request.body))
        count_single_use(context.resources, context.caller, context.caller_limits, new_id(), use)
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


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.SHOW_AGENT_DEFINITION)
def _show_agent_definition(context: RequestContext) -> Response:
    agent_id = context.path_parameters["id"]
    return Response(200, definition_store.get_definition_view(context.resources, context.caller.tenant, agent_id))


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.REMOVE_AGENT_DEFINITION)
def _remove_agent_definition(context: RequestContext) -> Response:
    definition_store.remove_agent(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.LIST_SECRETS)
def _list_secrets(context: RequestContext) -> Response:
    return Response(200, {"secrets": tenant_secrets.list_secret_views(context.resources, context.caller.tenant)})


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.SET_SECRET)
def _put_secret(context: RequestContext) -> Response:
    body = context.parse_body(NewSecret)
    name = context.path_parameters["name"]
    return Response(200, {"secret": tenant_secrets.set_secret(context.resources, context.caller, name, body.value)})


@AGENT_DEFINITION_ROUTES.handles(agent_definitions.REMOVE_SECRET)
def _delete_secret(context: RequestContext) -> Response:
    tenant_secrets.remove_secret(context.resources, context.caller, context.path_parameters["name"])
    return Response(200, {"ok": True})


@AGENT_DEFINITION_ROUTES.handles(policies.SHOW_POLICY)
def _show_approval_policy(context: RequestContext) -> Response:
    return Response(200, to_policy_view(read_policy(context.resources, context.caller.tenant)))


@AGENT_DEFINITION_ROUTES.handles(policies.SET_POLICY)
def _set_approval_policy(context: RequestContext) -> Response:
    from fermata.turns.approvals.set_tenant_policy import set_tenant_policy  # imported here: policies seldom change

    policy = ApprovalPolicy.from_wire(context.parse_body(NewApprovalPolicy).model_dump(by_alias=True))
    return Response(200, set_tenant_policy(context.resources, context.caller, policy))
