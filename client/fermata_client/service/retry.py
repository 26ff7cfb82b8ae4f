"""Retry requests that failed for a reason that may pass, with exponential backoff."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fermata_client.service.errors import FermataClientError, RequestRefusedError, TurnLostError, is_retryable

_Result = TypeVar("_Result")

MAX_RETRY_AFTER_SECONDS = 60.0


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retries: failures in a row without progress, and seconds before each retry, which double each time."""

    max_failures: int = 8
    first_delay: float = 0.2
    max_delay: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def wait_before_retry(self, failure_count: int, error: FermataClientError | None = None) -> None:
        """Sleep for the backoff after this many failures in a row, or for the service's Retry-After if longer."""
        delay = min(self.max_delay, self.first_delay * 2 ** (failure_count - 1))
        jittered = delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
        retry_after = (error.retry_after or 0.0) if isinstance(error, RequestRefusedError) else 0.0
        self.sleep(max(jittered, min(retry_after, MAX_RETRY_AFTER_SECONDS)))

    def call_with_retries(self, operation: Callable[[], _Result]) -> _Result:
        """Call an operation until it succeeds.

        Raises:
            TurnLostError: it failed `max_failures` times for reasons that may pass.
            FermataClientError: it failed for a reason that will not pass.
        """
        failure_count = 0
        while True:
            try:
                return operation()
            except FermataClientError as error:
                failure_count += 1
                if not is_retryable(error):
                    raise
                if failure_count >= self.max_failures:
                    raise TurnLostError(f"Gave up after {failure_count} attempts. The last one: {error}") from error
                self.wait_before_retry(failure_count, error)
