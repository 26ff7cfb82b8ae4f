"""Make one attempt of a call to an HTTP endpoint that a tenant's agents name, and read what it answers (decision 0368).

The body is `{payload, _agent}`: the input of the call, and what the service knows of the agent that calls. A method
without a body has the members of the input in its query, and the agent in a header.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fermata.agents.definitions.agent_definition import EndpointDefinition
from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.error_mapping import parse_retry_after, redact_secrets
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.remote_tools.signed_tool_attempt import is_refused_status, is_transient_status
from fermata.signed_requests.signed_post import (
    IDEMPOTENCY_HEADER,
    MAX_RESPONSE_BYTES,
    RESERVED_HEADERS,
    is_transient_transport_error,
)

if TYPE_CHECKING:
    from fermata.drivers.transport.http_connection import HttpConnection

AGENT_MEMBER = "_agent"
AGENT_HEADER = "x-fermata-agent"
ENDPOINT_FAILED_MESSAGE = "Endpoint execution failed"
_METHODS_WITHOUT_BODY = frozenset({"GET", "DELETE"})
_MARKERS = frozenset({"~k", "~r", "~l"})
MAX_WIRE_MESSAGE_CHARS = 1000


@value_dataclass(frozen=True)
class CallingAgent:
    """What an endpoint is told about the agent that calls it. No model can set it."""

    id: str
    conversation: str
    user: str

    def to_wire(self) -> dict[str, str]:
        """Return the member `_agent`."""
        return {"id": self.id, "conversationId": self.conversation, "userId": self.user}


@value_dataclass(frozen=True)
class EndpointCall:
    """One call of an endpoint. `attempt` sends it; every attempt has the same key.

    Attributes:
        headers: With the secrets of the tenant.
        message_id: Identifies the call, so that the endpoint can act once.
    """

    endpoint: EndpointDefinition
    headers: Mapping[str, str] = field(repr=False)
    agent: CallingAgent
    message_id: str
    connection: "HttpConnection" = field(repr=False)

    def attempt(self, payload: Any) -> Any:
        """Send the call once, and return the data of its response.

        Raises:
            AttemptFailed: The endpoint refused, failed, or gave no response that can be used.
        """
        url, body = self._build_request(payload)
        try:
            with self.connection.request(
                "endpoint", self.endpoint.method, url, self._build_headers(body is not None), body
            ) as response:
                return self._read_response(response)
        except ProviderError as error:
            raise self._describe_transport_error(error) from error

    def _build_request(self, payload: Any) -> tuple[str, bytes | None]:
        endpoint = self.endpoint
        if endpoint.method not in _METHODS_WITHOUT_BODY:
            sent = {"payload": payload, AGENT_MEMBER: self.agent.to_wire()}
            return endpoint.url, json.dumps(sent, separators=(",", ":"), ensure_ascii=True).encode()
        members = payload if isinstance(payload, Mapping) else {}
        query = urlencode({name: _format_query_value(value) for name, value in members.items() if value is not None})
        if not query:
            return endpoint.url, None
        return f"{endpoint.url}{'&' if '?' in endpoint.url else '?'}{query}", None

    def _build_headers(self, has_body: bool) -> dict[str, str]:
        own = {name: value for name, value in self.headers.items() if name.lower() not in RESERVED_HEADERS}
        described = {"content-type": "application/json"} if has_body else {}
        return {
            **own,
            **described,
            "accept": "application/json",
            "accept-encoding": "identity",
            AGENT_HEADER: json.dumps(self.agent.to_wire(), ensure_ascii=True),
            IDEMPOTENCY_HEADER: self.message_id,
        }

    def _describe_transport_error(self, error: ProviderError) -> AttemptFailed:
        reason = error.message.partition(" failed: ")[2] or error.message
        was_refused = error.code == "provider_unreachable" and "could not be reached" in reason
        message = f"{self.endpoint.id} did not answer: {reason}"
        return AttemptFailed(message, is_transient=is_transient_transport_error(error), was_refused=was_refused)

    def _read_response(self, response: ProviderResponse) -> Any:
        body = response.read_body(MAX_RESPONSE_BYTES + 1)
        if 300 <= response.status < 400:
            raise AttemptFailed(f"{self.endpoint.id} redirects ({response.status}), which is not followed.")
        value = _parse_body(body)
        if not 200 <= response.status < 300:
            raise AttemptFailed(
                self._find_message(value),
                is_transient=is_transient_status(response.status),
                was_refused=is_refused_status(response.status),
                retry_after=parse_retry_after(response.headers),
            )
        if len(body) > MAX_RESPONSE_BYTES:
            raise AttemptFailed(f"{self.endpoint.id} answered with more than 1 MB.")
        if isinstance(value, UnreadableJson):
            raise AttemptFailed(f"{self.endpoint.id} answered with what is no JSON.")
        if isinstance(value, dict) and value.get("success") is False:
            raise AttemptFailed(self._find_message(value))
        return strip_build_markers(value)

    def _find_message(self, value: Any) -> str:
        """Return the message that a failed endpoint has for its callers, and nothing else of its response."""
        error = value.get("error") if isinstance(value, dict) else None
        candidates = (error.get("message") if isinstance(error, dict) else error, _get_member(value, "message"))
        message = next((one for one in candidates if isinstance(one, str) and one.strip()), ENDPOINT_FAILED_MESSAGE)
        values = self.headers.values()
        words = (value.rpartition(" ")[2] for value in values)  # `Bearer` is no secret, and what follows it is
        for secret in (*values, *words):
            message = redact_secrets(message, secret, 4 * MAX_WIRE_MESSAGE_CHARS)
        return message[:MAX_WIRE_MESSAGE_CHARS]


def _get_member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _parse_body(body: bytes) -> Any:
    """Return the JSON of a body, None for an empty one, and the error of one that is no JSON."""
    if not body.strip():
        return None
    try:
        return parse_strict_json(body.decode("utf-8", "replace"))
    except UnreadableJson as error:
        return error


def _format_query_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def strip_build_markers(value: Any) -> Any:
    """Return JSON without the marks that Lowdefy's serializer adds: `~k`, `~r` and `~l`, and lists in `~arr`."""
    if isinstance(value, list):
        return [strip_build_markers(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("~arr"), list):
        return strip_build_markers(value["~arr"])
    return {name: strip_build_markers(member) for name, member in value.items() if name not in _MARKERS}
