"""Define operations on the agents that a tenant has defined, and on the secrets that they name."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.agent_requests import NewAgents, NewSecret
from fermata.wire.operations.common import API_PREFIX, OK_RESPONSES, UPLOAD_EXPIRED
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_CAN_MANAGE_AGENTS = (Capability.AGENTS,)
_AGENTS_PATH = f"{API_PREFIX}/agent-definitions"
_AGENT_PATH = f"{_AGENTS_PATH}/{{id}}"
_SECRETS_PATH = f"{API_PREFIX}/secrets"
_SECRET_PATH = f"{_SECRETS_PATH}/{{name}}"
_AGENT_ID = RequestParameter(
    "id", "The agent's id.", {"type": "string", "maxLength": 100}, required=True, location="path"
)
_SECRET_NAME = RequestParameter(
    "name", "The secret's name.", {"type": "string", "maxLength": 100}, required=True, location="path"
)
_NO_AGENT = {404: "The workspace has no such agent."}
_CHANGED = {409: "Another request has just changed the agents, or they have another version than `version`."}

LIST_AGENT_DEFINITIONS = Operation(
    name="listAgentDefinitions",
    function="credentials",
    method="GET",
    path=_AGENTS_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="List the workspace's own agents",
    responses=(SuccessResponse("By id.", "AgentDefinitionListResponse"),),
)
PUSH_AGENTS = Operation(
    name="pushAgents",
    function="credentials",
    method="PUT",
    path=_AGENTS_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="Replace the workspace's own agents",
    description="Compiles the files. Turns that run keep the agents with which they have started. To send the same "
    "again changes nothing. What the files do not define is removed.",
    body=NewAgents,
    responses=(SuccessResponse("What has changed, or with `dryRun` would change.", "PushedAgentsResponse"),),
    errors={
        400: "The files have mistakes: `code` is `invalid_agents`, and `problems` names all of them.",
        404: "Nothing was uploaded under a reference.",
        410: UPLOAD_EXPIRED,
        429: "The user or the workspace has reached a limit of stored bytes a day.",
    }
    | _CHANGED,
)
SHOW_AGENT_DEFINITION = Operation(
    name="showAgentDefinition",
    function="credentials",
    method="GET",
    path=_AGENT_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="Show one of the workspace's own agents",
    parameters=(_AGENT_ID,),
    responses=(SuccessResponse("The compiled agent.", "AgentDefinitionResponse"),),
    errors=_NO_AGENT,
)
REMOVE_AGENT_DEFINITION = Operation(
    name="removeAgentDefinition",
    function="credentials",
    method="DELETE",
    path=_AGENT_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="Remove one of the workspace's own agents",
    description="Turns that run with it go on.",
    parameters=(_AGENT_ID,),
    responses=OK_RESPONSES,
    errors=_NO_AGENT | {409: "Another agent asks this one, or another request has just changed the agents."},
)
LIST_SECRETS = Operation(
    name="listSecrets",
    function="credentials",
    method="GET",
    path=_SECRETS_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="List the secrets that agents can name",
    description="Their names only.",
    responses=(SuccessResponse("By name.", "SecretListResponse"),),
)
SET_SECRET = Operation(
    name="setSecret",
    function="credentials",
    method="PUT",
    path=_SECRET_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="Enter or replace a secret",
    description="Connections, endpoints and MCP sources name it as `{_secret: NAME}`.",
    parameters=(_SECRET_NAME,),
    body=NewSecret,
    responses=(SuccessResponse("The secret, without its value.", "SecretResponse"),),
    errors={409: "Another request has just changed it."},
)
REMOVE_SECRET = Operation(
    name="removeSecret",
    function="credentials",
    method="DELETE",
    path=_SECRET_PATH,
    capabilities=_CAN_MANAGE_AGENTS,
    summary="Remove a secret",
    parameters=(_SECRET_NAME,),
    responses=OK_RESPONSES,
    errors={404: "There is no such secret.", 409: "Another request has just changed it."},
)
