"""Decide which provider failures are retried, how often, and after which delay.

A turn has three ways to go on after a failure. `RetryPolicy` decides all of them:

1. The request is repeated in place, as long as nothing of its answer was seen (`get_retry_delay`).
2. The round starts over. Once text was shown, that takes a reader who can take it back (`may_restart_round`).
3. The round starts over with less of the conversation, if that was more than the model takes
   (`may_reduce_request`).

`Failure` says which failures may pass. `stream_with_retries` carries out the first way; `turns/round` the others.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelRequest, StreamPart
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint

if TYPE_CHECKING:
    from fermata.drivers.registry import Driver
    from fermata.drivers.transport.connection_interface import ProviderConnection

RETRYABLE_STATUSES = frozenset({408, 409, 429})
"""Besides 500 and above."""


class Failure(Enum):
    """What can happen to a provider request: the code of its error, and whether the same request may succeed later."""

    INVALID_KEY = ("provider_auth", False)
    QUOTA_SPENT = ("provider_quota", False)
    RATE_LIMITED = ("provider_quota", True)
    OVERLOADED = ("provider_overloaded", True)
    SERVER_ERROR = ("provider_error", True)
    UNUSABLE_RESPONSE = ("provider_error", False)
    NO_ANSWER = ("provider_empty", True)
    BAD_REQUEST = ("provider_request", False)
    REQUEST_TOO_LARGE = ("provider_overflow", False)
    UNREADABLE_IMAGE = ("provider_images", False)
    UNREACHABLE = ("provider_unreachable", True)
    STALLED = ("provider_stalled", True)
    ABORTED = ("provider_closed", False)

    def __init__(self, code: str, is_retryable: bool) -> None:
        self.code = code
        self.is_retryable = is_retryable

    def to_error(self, message: str) -> ProviderError:
        """Build the error that a turn ends with, or that is retried."""
        return ProviderError(self.code, message, retryable=self.is_retryable)


def is_retryable_status(status: int) -> bool:
    return status in RETRYABLE_STATUSES or status >= 500


def is_retryable_response(status: int, headers: Mapping[str, str], failure: Failure | None) -> bool:
    """Return whether a request that was answered with an error status may succeed later.

    Args:
        status: The HTTP status.
        headers: Of the response; `x-should-retry` overrides everything else.
        failure: What the body says, if it says anything that is known. A spent quota has the status of a rate limit,
            but does not pass.
    """
    if headers.get("x-should-retry") in ("true", "false"):
        return headers["x-should-retry"] == "true"
    return failure is Failure.NO_ANSWER or (failure is not Failure.QUOTA_SPENT and is_retryable_status(status))


@value_dataclass(frozen=True)
class RetryPolicy:
    """How often and when a failed request is repeated.

    Attributes:
        max_attempts: Requests in a row while nothing of an answer was seen.
        first_delay_seconds: The delay before the second attempt; it doubles with each further one.
        max_delay_seconds: A provider that asks for a longer delay is not asked again.
        max_round_attempts: How often a round may start, the first time included.
        max_reduced_attempts: The same for a round that starts with less of the conversation each time.
    """

    max_attempts: int = 3
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 30.0
    max_round_attempts: int = 2
    max_reduced_attempts: int = 4

    def get_retry_delay(self, attempt: int, error: ProviderError, jitter: float) -> float | None:
        """Return the seconds to wait before the request is repeated; None if it is not.

        Args:
            attempt: The number of the attempt that failed; the first is 1.
            error: What it failed with. Its `retry_after` counts before our own delay.
            jitter: A random number between 0 and 1, which spreads clients over a quarter of the delay.
        """
        if not error.retryable or attempt >= self.max_attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.max_delay_seconds else None
        return self.first_delay_seconds * 2.0 ** (attempt - 1) * (0.75 + 0.25 * jitter)

    def may_restart_round(self, attempts: int, *, was_text_shown: bool, can_retract_text: bool) -> bool:
        """Return whether a round may start over.

        Args:
            attempts: How often it has started already.
            was_text_shown: Whether readers have seen text of this attempt.
            can_retract_text: Whether all readers can remove text that they have shown.
        """
        return attempts < self.max_round_attempts and (can_retract_text or not was_text_shown)

    def may_reduce_request(self, attempts: int, *, was_text_shown: bool) -> bool:
        """Return whether a round may start over with less of the conversation after `attempts` starts."""
        return attempts < self.max_reduced_attempts and not was_text_shown


DEFAULT_RETRY_POLICY = RetryPolicy()


def stream_with_retries(
    driver: "Driver",
    request: ModelRequest,
    connection: "ProviderConnection",
    endpoint: AuthenticatedEndpoint,
    on_failed: Callable[[ProviderError], None],
    *,
    before_retry: Callable[[], None] = lambda: None,
    policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    sleep: Callable[[float], None] | None = None,
    get_jitter: Callable[[], float] = random.random,
) -> Iterator[StreamPart]:
    """Stream a response, and repeat the request while it has produced nothing.

    Once a part is out, the caller decides what a failure means. An aborted call ends the delays too.

    Args:
        on_failed: Called for each failed request that is about to be repeated, before the delay.
        before_retry: Called after the delay. What it raises ends the repetitions.
        policy: Decides about the repetitions.
        sleep: Waits for a number of seconds; the connection's `sleep` by default.
        get_jitter: Returns a random number between 0 and 1.

    Raises:
        ProviderError: The last failure.
    """
    with connection.call_scope():
        attempt = 1
        while True:
            was_seen = False
            try:
                for part in driver.stream(request, connection, endpoint):
                    was_seen = True
                    yield part
            except ProviderError as error:
                delay = policy.get_retry_delay(attempt, error, get_jitter())
                if was_seen or delay is None or delay > connection.remaining_seconds():
                    raise
                on_failed(error)
                (sleep or connection.sleep)(delay)
                before_retry()
                attempt += 1
            else:
                return
