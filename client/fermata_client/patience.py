"""How long to try again before giving up."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fermata_client.errors import ClientError, Refused, TurnLost, passing

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """`failures` in a row without any progress are too many; the waits between them grow from `first` to `longest`."""

    failures: int = 8
    first: float = 0.2
    longest: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, failure: int, error: ClientError | None = None) -> None:
        """Wait before attempt number `failure` + 1, at least as long as the service asked for."""
        backoff = min(self.longest, self.first * 2 ** (failure - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
        asked = error.retry_after if isinstance(error, Refused) else None
        self.sleep(max(backoff, min(asked or 0.0, 60.0)))

    def insist(self, verb: Callable[[], T]) -> T:
        """Do it again while it fails for passing reasons, a bounded number of times."""
        failure = 0
        while True:
            try:
                return verb()
            except ClientError as error:
                failure += 1
                if not passing(error):
                    raise
                if failure >= self.failures:
                    raise TurnLost(f"Gave up after {failure} attempts. The last one: {error}") from error
                self.pause(failure, error)
