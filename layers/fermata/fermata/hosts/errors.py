"""Convert failed host requests to errors whose messages a model can act on and pass on to its user."""

from dataclasses import field

from fermata.domain.errors import FermataError, ProviderError
from fermata.domain.lenient_json import UnreadableJson, read_bounded_json
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.error_mapping import redact_secrets

MAX_HOST_REASON_CHARS = 300
"""The maximum length of a host's own error text in a message."""
_TRANSIENT_STATUSES = {408, 425, 429}


class HostError(FermataError):
    """A failed host request.

    Attributes:
        is_transient: Whether the same request may succeed a moment later. False for one that took all its time.
        status: The HTTP status, if the host answered.
    """

    def __init__(self, message: str, *, is_transient: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.status = status


@value_dataclass(frozen=True)
class HostRequest:
    """A request as error messages describe it."""

    host: str
    method: str
    path: str
    token: str = field(repr=False)
    has_side_effects: bool = False
    """If the connection fails, it is unknown whether the request took effect."""

    def __str__(self) -> str:
        return f"The content system ({self.host})"

    @property
    def uncertainty_note(self) -> str:
        return " Whether it took effect is unknown: check before repeating it." if self.has_side_effects else ""


def host_error_from_transport(request: HostRequest, error: ProviderError, seconds: float) -> HostError:
    """Convert the failure of a request that got no complete response within its time limit of `seconds`."""
    reason = error.message.partition(" failed: ")[2] or error.message
    match error.code:
        case "provider_stalled":
            return HostError(f"{request} gave no answer within {seconds:g} seconds.{request.uncertainty_note}")
        case "provider_closed":
            return HostError(f"{request} was not waited for: the turn is over.{request.uncertainty_note}")
        case "provider_unreachable":
            return HostError(f"{request} did not answer: {reason}{request.uncertainty_note}", is_transient=True)
        case _:
            return HostError(f"{request} must not be asked: {reason} An administrator has to correct its address.")


def host_error_from_response(request: HostRequest, status: int, body: bytes) -> HostError:
    """Convert a response whose status is not a success."""
    reason = _format_reason(body, request.token)
    if status in _TRANSIENT_STATUSES or status >= 500:
        message = f"{request} failed ({status}){reason}.{request.uncertainty_note}"
        return HostError(message, is_transient=True, status=status)
    return HostError(_refusal_message(request, status, reason), status=status)


def _refusal_message(request: HostRequest, status: int, reason: str) -> str:
    action = f"{request.method} {request.path}"
    if 300 <= status < 400:
        return f"{request} redirects {action}, which is not followed. An administrator has to register where it leads."
    if status == 401:
        return f"{request} does not take Fermata's token{reason}. An administrator should check its secret and clock."
    if status == 403:
        return f"{request} does not let this user do that{reason}."
    if status in (404, 405):
        return f"{request} has nothing at {action}{reason}."
    return f"{request} refused {action} ({status}){reason}."


def _format_reason(body: bytes, token: str) -> str:
    """Return `: <text>` if the host sent `{"error": "<text>"}`. Anything else, such as HTML, does not help a model."""
    try:
        value = read_bounded_json(body.decode("utf-8-sig", "replace"))
    except UnreadableJson:
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, str) or not error.strip():
        return ""
    return f": {redact_secrets(' '.join(error.split()), token, MAX_HOST_REASON_CHARS).rstrip('. ')}"
