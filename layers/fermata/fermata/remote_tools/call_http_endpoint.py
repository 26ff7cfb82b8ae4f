"""Call the HTTP endpoints that an agent of a tenant names, on the executor of remote tools (decision 0368)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fermata.agents.definitions.agent_definition import EndpointDefinition
from fermata.agents.definitions.tenant_secrets import resolve_secrets
from fermata.agents.tool_sources.endpoint_tools import (
    DEFAULT_ENDPOINT_TIMEOUT_MS,
    is_idempotent_endpoint,
)
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.http_endpoint_attempt import CallingAgent, EndpointCall
from fermata.remote_tools.manifest_tool_executor import (
    APPROVED,
    ExecutionClock,
    ManifestTool,
    ResultComesLater,
    execute_tool,
)
from fermata.remote_tools.remote_tool_caller import make_attempt_sleep
from fermata.remote_tools.tool_manifest import (
    MAX_ATTEMPTS,
    MAX_TIMEOUT_MS,
    MIN_TIMEOUT_MS,
    ManifestRetryPolicy,
    ToolManifest,
)
from fermata.signed_requests.signed_post import open_guarded_connection

if TYPE_CHECKING:
    from fermata.drivers.transport.http_connection import HttpConnection


class EndpointCaller:
    """Calls endpoints for one turn, one call at a time. `abort` may be called from any thread."""

    def __init__(self, resources: Resources, tenant: str, agent: CallingAgent) -> None:
        self._resources = resources
        self._tenant = tenant
        self._agent = agent
        self._connection: HttpConnection | None = None

    def call(self, endpoint: EndpointDefinition, payload: Mapping[str, Any], message_id: str) -> ToolOutput:
        """Call an endpoint and return its outcome; nothing is raised.

        Args:
            endpoint: As the agent's version has it.
            payload: Valid input.
            message_id: Identifies the call, the same for its repetitions.
        """
        try:
            headers = resolve_secrets(self._resources, self._tenant, endpoint.headers)
        except ApiError as refusal:
            return ToolOutput.failure(refusal.message)
        manifest = build_endpoint_manifest(endpoint)
        settings, clock = self._resources.settings, self._resources.clock
        with open_guarded_connection(
            loopback=settings.is_loopback_allowed, seconds=manifest.timeout_seconds
        ) as connection:
            self._connection = connection
            try:
                sent = {str(name): str(value) for name, value in headers.items()}
                call = EndpointCall(endpoint, sent, self._agent, message_id, connection)
                execution_clock = ExecutionClock(clock.monotonic, make_attempt_sleep(connection))
                outcome = execute_tool(ManifestTool(manifest, call.attempt), payload, execution_clock, policy=APPROVED)
            finally:
                self._connection = None
        assert not isinstance(outcome, ResultComesLater), "an endpoint answers at once"
        return outcome

    def abort(self) -> None:
        """End the call under way, because its result is no longer needed."""
        connection = self._connection
        if connection is not None:
            connection.abort()


def build_endpoint_manifest(endpoint: EndpointDefinition) -> ToolManifest:
    """Return the manifest by which the executor treats an endpoint."""
    timeout_ms = min(max(endpoint.timeout or DEFAULT_ENDPOINT_TIMEOUT_MS, MIN_TIMEOUT_MS), MAX_TIMEOUT_MS)
    return ToolManifest(
        name=endpoint.id,
        description=endpoint.description or endpoint.id,
        input_schema=endpoint.payload_schema or {},
        output_schema=endpoint.output_schema or {},
        capability=endpoint.capability,
        timeout_ms=timeout_ms,
        retry_policy=ManifestRetryPolicy(max_attempts=min(max(endpoint.max_attempts, 1), MAX_ATTEMPTS), backoff_ms=500),
        idempotent=is_idempotent_endpoint(endpoint),
    )
