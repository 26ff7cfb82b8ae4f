"""Offer the HTTP endpoints of a tenant that an agent's model may call (decision 0368)."""

from collections.abc import Mapping

from fermata.agents.definitions.agent_definition import AgentDefinition, EndpointDefinition, EndpointToolReference
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Access, Approval, Execution, JsonInput, Risk, Tool, ToolContext

ENDPOINT_TOOLSET = "endpoints"
ENDPOINT_PREFIX = "endpoint:"
"""With which the name begins under which a tool's endpoint is called."""
DEFAULT_ENDPOINT_TIMEOUT_MS = 30_000
EXTRA_SECONDS = 10.0
"""What a tool may take longer than all attempts of its endpoint."""


@value_dataclass(frozen=True)
class EndpointToolHandler:
    """Calls an endpoint through the turn that runs it."""

    endpoint_id: str

    def __call__(self, tool_input: JsonInput, context: ToolContext, /) -> ToolOutput:
        return context.call_remote_tool(ENDPOINT_PREFIX + self.endpoint_id, tool_input.arguments, context.effect_key)


def list_endpoint_tools(definition: AgentDefinition, tenant: str) -> tuple[Tool, ...]:
    """Return the endpoint tools of an agent, in the order of its definition.

    Args:
        definition: The compiled agent.
        tenant: Whose tools they are.
    """
    endpoints: Mapping[str, EndpointDefinition] = definition.endpoints
    return tuple(
        _build_endpoint_tool(endpoints[reference.endpoint_id], reference, tenant)
        for reference in definition.tools
        if reference.endpoint_id in endpoints
    )


def is_idempotent_endpoint(endpoint: EndpointDefinition) -> bool:
    """Return whether the same call may be sent again without a second effect."""
    return endpoint.idempotent or endpoint.method == "GET"


def _build_endpoint_tool(endpoint: EndpointDefinition, reference: EndpointToolReference, tenant: str) -> Tool:
    """Return the record. Only `confirm` makes a call wait for a person, besides the policies of agent and tenant."""
    is_write = endpoint.capability == "write"
    seconds = (endpoint.timeout or DEFAULT_ENDPOINT_TIMEOUT_MS) / 1000
    return Tool(
        name=reference.name,
        toolset=ENDPOINT_TOOLSET,
        description=endpoint.description,
        execution=Execution.REMOTE,
        access=Access.WRITE if is_write else Access.READ,
        input_model=JsonInput,
        declared_schema={"type": "object", "properties": {}} | (endpoint.payload_schema or {}),
        handler=EndpointToolHandler(endpoint.id),
        permissions=frozenset(endpoint.roles),
        tenant=tenant,
        risk=Risk.HIGH if is_write else Risk.SAFE,
        approval=Approval.ALWAYS if reference.confirm else Approval.NEVER,
        timeout_seconds=seconds * max(endpoint.max_attempts, 1) + EXTRA_SECONDS,
        idempotent=is_idempotent_endpoint(endpoint),
        reads_outside_content=True,
    )
