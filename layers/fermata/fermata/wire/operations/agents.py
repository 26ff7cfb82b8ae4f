"""Define operations on agents: which there are, and what each consists of."""

from fermata.wire.operations.common import API_PREFIX, CAN_CHAT, NO_SUCH_TOOL_NAMES, TOOL_NAMES
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

LIST_AGENTS = Operation(
    name="listAgents",
    function="tool_result",
    method="GET",
    path=f"{API_PREFIX}/agents",
    capabilities=CAN_CHAT,
    summary="List the agents",
    description="The assistants that the caller may ask. A prompt to `chat/{scope}` asks the agent whose id is the "
    "scope.",
    responses=(SuccessResponse("The agents, in the order in which they are displayed.", "AgentListResponse"),),
)
SHOW_AGENT = Operation(
    name="showAgent",
    function="tool_result",
    method="GET",
    path=f"{API_PREFIX}/agents/{{agentId}}",
    capabilities=CAN_CHAT,
    summary="Show an agent",
    description="The agent's definition, with the tools that a model is offered in this caller's turns.",
    parameters=(
        RequestParameter(
            "agentId", "The agent's id.", {"type": "string", "maxLength": 100}, required=True, location="path"
        ),
        TOOL_NAMES,
    ),
    responses=(SuccessResponse("The agent.", "AgentResponse"),),
    errors=NO_SUCH_TOOL_NAMES | {404: "There is no such agent."},
)
