"""Send one event to one webhook, and decide when it is sent again."""

import random
from collections.abc import Mapping
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.signed_requests.signed_post import SignedMessage, open_guarded_connection, send_signed_post

WEBHOOK_TIMEOUT_SECONDS = 15.0
MAX_WAIT_SECONDS = 900.0
MAX_AGE_SECONDS = 3 * 86_400
"""An event is given up when its receiver has not taken it for so long."""
_FIRST_WAIT_SECONDS = 5.0
MAX_ERROR_CHARS = 200


@value_dataclass(frozen=True)
class SendOutcome:
    """The outcome of one attempt. `response` is what the receiver answered, if that is a JSON object."""

    is_delivered: bool
    status: int | None = None
    error: str | None = None
    response: Mapping[str, Any] | None = None


def send_event(resources: Resources, url: str, secret: str, event_id: str, payload: Mapping[str, Any]) -> SendOutcome:
    """Send an event once. Any status below 300 means that it was taken.

    Args:
        url: The webhook's address, which is checked again now.
        secret: Signs the request.
        event_id: The same for every attempt; receivers know by it what they have already.
        payload: The event.
    """
    message = SignedMessage(url, event_id, payload, [secret], {})
    loopback = resources.settings.is_loopback_allowed
    with open_guarded_connection(loopback=loopback, seconds=WEBHOOK_TIMEOUT_SECONDS) as connection:
        try:
            response = send_signed_post(connection, message, resources.clock.time())
        except ProviderError as error:
            reason = error.message.partition(" failed: ")[2] or error.message
            return SendOutcome(False, error=reason[:MAX_ERROR_CHARS])
    if not response.is_success:
        return SendOutcome(False, response.status, f"It answered {response.status}.")
    body = None if response.is_too_large else _parse_object(response.body)
    return SendOutcome(True, response.status, response=body)


def _parse_object(body: bytes) -> Mapping[str, Any] | None:
    try:
        value = parse_strict_json(body.decode("utf-8", "replace")) if body.strip() else None
    except UnreadableJson:
        return None
    return value if isinstance(value, dict) else None


def get_next_wait(attempts: int, age_seconds: float, jitter: float | None = None) -> float | None:
    """Return the seconds until the next attempt, or None when the event is given up.

    The waits are 5 s, 20 s, 80 s, 5 min and then 15 min, each up to a fifth shorter.

    Args:
        attempts: How many attempts have failed.
        age_seconds: How old the event is.
        jitter: A random number between 0 and 1; drawn if it is None.
    """
    if age_seconds > MAX_AGE_SECONDS:
        return None
    wait = min(_FIRST_WAIT_SECONDS * 4.0 ** min(attempts - 1, 8), MAX_WAIT_SECONDS)
    share = random.random() if jitter is None else jitter  # noqa: S311 (jitter, not a secret)
    return wait * (1 - 0.2 * share)
