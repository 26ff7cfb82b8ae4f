"""How long to try again before giving up."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fermata_client.service.errors import FermataClientError, RequestRefusedError, TurnLostError, is_retryable

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """`failures` in a row without any progress are too many; the waits between them grow from `first` to `longest`."""

    max_failures: int = 8
    first_delay: float = 0.2
    max_delay: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def wait_before_retry(self, failure: int, error: FermataClientError | None = None) -> None:
        """Wait before attempt number `failure` + 1, at least as long as the service asked for."""
        backoff = min(self.max_delay, self.first_delay * 2 ** (failure - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
        asked = error.retry_after if isinstance(error, RequestRefusedError) else None
        self.sleep(max(backoff, min(asked or 0.0, 60.0)))

    def call_with_retries(self, operation: Callable[[], T]) -> T:
        """Do it again while it fails for passing reasons, a bounded number of times."""
        failure = 0
        while True:
            try:
                return operation()
            except FermataClientError as error:
                failure += 1
                if not is_retryable(error):
                    raise
                if failure >= self.max_failures:
                    raise TurnLostError(f"Gave up after {failure} attempts. The last one: {error}") from error
                self.wait_before_retry(failure, error)
