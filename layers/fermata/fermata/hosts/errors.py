"""What a host's refusal or silence means, in sentences that a model can act on and pass on to its user."""

import json
from dataclasses import dataclass, field

from fermata.domain.errors import FermataError, ProviderError
from fermata.drivers.error_mapping import redact_secrets

MAX_HOST_REASON_CHARS = 300
"""Characters of a host's own words that are passed on."""
_PASSING = {408, 425, 429}


class HostError(FermataError):
    """`is_passing`: the same request may succeed a moment later; one that took all its time is not worth that.
    `status`: what the host answered with, if it did.
    """

    def __init__(self, message: str, *, is_transient: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.status = status


@dataclass(frozen=True)
class HostRequest:
    """One request, as failures speak of it."""

    host: str
    method: str
    path: str
    token: str = field(repr=False)
    has_side_effects: bool = False
    """It changes something: after a failure on the way nobody knows whether it did."""

    def __str__(self) -> str:
        return f"The content system ({self.host})"

    @property
    def uncertainty_note(self) -> str:
        return " Whether it took effect is unknown: check before repeating it." if self.has_side_effects else ""


def host_error_from_transport(wish: HostRequest, problem: ProviderError, seconds: float) -> HostError:
    """No answer came, or not all of it."""
    told = problem.message.partition(" failed: ")[2] or problem.message
    match problem.code:
        case "provider_stalled":
            return HostError(f"{wish} gave no answer within {seconds:g} seconds.{wish.uncertainty_note}")
        case "provider_closed":
            return HostError(f"{wish} was not waited for: the turn is over.{wish.uncertainty_note}")
        case "provider_unreachable":
            return HostError(f"{wish} did not answer: {told}{wish.uncertainty_note}", is_transient=True)
        case _:
            return HostError(f"{wish} must not be asked: {told} An administrator has to correct its address.")


def host_error_from_response(wish: HostRequest, status: int, body: bytes) -> HostError:
    """It answered with anything but success."""
    said = _reason(body, wish.token)
    if status in _PASSING or status >= 500:
        return HostError(f"{wish} failed ({status}){said}.{wish.uncertainty_note}", is_transient=True, status=status)
    return HostError(_no(wish, status, said), status=status)


def _no(wish: HostRequest, status: int, said: str) -> str:
    asked = f"{wish.method} {wish.path}"
    if 300 <= status < 400:
        return f"{wish} redirects {asked}, which is not followed. An administrator has to register where it leads."
    if status == 401:
        return f"{wish} does not take Fermata's token{said}. An administrator should check its secret and clock."
    if status == 403:
        return f"{wish} does not let this user do that{said}."
    if status in (404, 405):
        return f"{wish} has nothing at {asked}{said}."
    return f"{wish} refused {asked} ({status}){said}."


def _reason(body: bytes, token: str) -> str:
    """`: <its own words>`, where it sent `{"error": "…"}`; a page of HTML says nothing to a model."""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, str) or not error.strip():
        return ""
    return f": {redact_secrets(' '.join(error.split()), token, MAX_HOST_REASON_CHARS).rstrip('. ')}"
