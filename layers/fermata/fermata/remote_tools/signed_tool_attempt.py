"""Make one attempt of a remote tool: a signed POST to its endpoint, and what its response means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.error_mapping import parse_retry_after, redact_secrets
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.remote_tools.manifest_tool_executor import AttemptFailed, ResultComesLater
from fermata.signed_requests.signed_post import (
    SignedMessage,
    SignedPostResponse,
    is_transient_transport_error,
    send_signed_post,
)

MAX_ENDPOINT_WORDS_CHARS = 200
ACCEPTED_STATUS = 202
_TRANSIENT_STATUSES = frozenset({408, 425, 429})
"""Besides 500 and above."""
_REFUSED_STATUSES = frozenset({425, 429, 503})
"""Statuses by which a server says that it has not begun."""


def is_transient_status(status: int) -> bool:
    """Return whether a request that was answered with this status may succeed later."""
    return status in _TRANSIENT_STATUSES or status >= 500


def is_refused_status(status: int) -> bool:
    """Return whether a server that answers with this status has not begun."""
    return status in _REFUSED_STATUSES


@value_dataclass(frozen=True)
class RemoteCallContext:
    """What a remote tool is told about the call.

    Attributes:
        callback: Where its result goes if it is not ready now; None where none is awaited.
    """

    site: str
    session: str
    user: str
    trace: str
    provider: str
    callback: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the member `context` of the request."""
        return {
            "siteId": self.site,
            "sessionId": self.session,
            "userId": self.user,
            "traceId": self.trace,
            "plannerProvider": self.provider,
        }


@value_dataclass(frozen=True)
class RemoteEndpoint:
    """Where a remote tool is reached, with its opened secrets."""

    url: str
    signing_secrets: Sequence[str] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@value_dataclass(frozen=True)
class RemoteCall:
    """One call of a remote tool. `attempt` sends it; every attempt has the same id."""

    tool_name: str
    endpoint: RemoteEndpoint
    effect_key: str
    context: RemoteCallContext
    connection: ProviderConnection
    get_time: Callable[[], float]

    def attempt(self, arguments: Mapping[str, Any]) -> Any:
        """Send the call once.

        Returns:
            The data of the response, or ResultComesLater.

        Raises:
            AttemptFailed: The endpoint refused, failed, or gave no response that can be used.
        """
        message = SignedMessage(
            url=self.endpoint.url,
            message_id=self.effect_key,
            payload=self._build_payload(arguments),
            signing_secrets=self.endpoint.signing_secrets,
            headers=self.endpoint.headers,
        )
        try:
            response = send_signed_post(self.connection, message, self.get_time())
        except ProviderError as error:
            raise self._describe_transport_error(error) from error
        return self._read_response(response)

    def _build_payload(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        payload = {"toolName": self.tool_name, "arguments": arguments, "context": self.context.to_wire()}
        return payload | ({"callback": self.context.callback} if self.context.callback else {})

    def _describe_transport_error(self, error: ProviderError) -> AttemptFailed:
        reason = error.message.partition(" failed: ")[2] or error.message
        is_transient = is_transient_transport_error(error)
        was_refused = error.code == "provider_unreachable" and "could not be reached" in reason
        return AttemptFailed(
            f"{self.tool_name} did not answer: {reason}", is_transient=is_transient, was_refused=was_refused
        )

    def _read_response(self, response: SignedPostResponse) -> Any:
        if not response.is_success:
            raise self._describe_status(response)
        if response.is_too_large:
            raise AttemptFailed(f"{self.tool_name} answered with more than 1 MB.")
        if response.status == ACCEPTED_STATUS and self.context.callback and not response.body.strip():
            return ResultComesLater()
        body = self._parse_body(response.body)
        if response.status == ACCEPTED_STATUS and self.context.callback and "data" not in body:
            return ResultComesLater()
        return body.get("data")

    def _parse_body(self, body: bytes) -> dict[str, Any]:
        try:
            value = parse_strict_json(body.decode("utf-8", "replace"))
        except UnreadableJson:
            raise AttemptFailed(f"{self.tool_name} answered with what is no JSON: {self._quote(body)}") from None
        return value if isinstance(value, dict) else {}

    def _describe_status(self, response: SignedPostResponse) -> AttemptFailed:
        status = response.status
        if 300 <= status < 400:
            return AttemptFailed(f"{self.tool_name} redirects ({status}), which is not followed.")
        quoted = self._quote(response.body)
        return AttemptFailed(
            f"{self.tool_name} answered {status}" + (f": {quoted}" if quoted else "."),
            is_transient=is_transient_status(status),
            was_refused=is_refused_status(status),
            retry_after=parse_retry_after(response.headers),
        )

    def _quote(self, body: bytes) -> str:
        """Return the beginning of a body without the secrets that it may repeat."""
        text = body[: 4 * MAX_ENDPOINT_WORDS_CHARS].decode("utf-8", "replace")
        values = self.endpoint.headers.values()
        words = (value.rpartition(" ")[2] for value in values)  # `Bearer` is no secret, and what follows it is
        for secret in (*values, *words, *self.endpoint.signing_secrets):
            text = redact_secrets(text, secret, 4 * MAX_ENDPOINT_WORDS_CHARS)
        return text[:MAX_ENDPOINT_WORDS_CHARS]
