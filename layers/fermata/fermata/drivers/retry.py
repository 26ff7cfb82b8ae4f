"""Asks again when a provider failed before anything could be seen."""

import random
from collections.abc import Callable, Iterator

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelRequest, StreamPart
from fermata.drivers.registry import Driver, Endpoint
from fermata.drivers.transport.connection import ProviderConnection

DEFAULT_MAX_ATTEMPTS = 3
MAX_DELAY_SECONDS = 30.0
FIRST_DELAY_SECONDS = 1.0


def stream_with_retries(
    driver: Driver,
    ask: ModelRequest,
    line: ProviderConnection,
    endpoint: Endpoint,
    on_failed: Callable[[int, ProviderError], None],
    *,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    sleep: Callable[[float], None] | None = None,
    chance: Callable[[], float] = random.random,
) -> Iterator[StreamPart]:
    """`driver.stream`, tried up to `tries` times while it has produced nothing.

    `on_failed(try, error)` is told of each failed request that another one follows, first of all; the last failure is
    raised. Once a piece is out, the caller decides what a failure means. A hang-up ends the waits too.
    """
    with line.call_scope():
        for number in range(1, max(1, max_attempts) + 1):
            silent = True
            try:
                for piece in driver.stream(ask, line, endpoint):
                    silent = False
                    yield piece
            except ProviderError as error:
                pause = None if number >= max_attempts else _get_delay(number, error, chance)
                if not silent or pause is None or pause > line.remaining_seconds():
                    raise
                on_failed(number, error)
                (sleep or line.sleep)(pause)
            else:
                return


def _get_delay(number: int, error: ProviderError, chance: Callable[[], float]) -> float | None:
    """Seconds before the next try, or None when there is no use in one."""
    if not error.retryable:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= MAX_DELAY_SECONDS else None
    return FIRST_DELAY_SECONDS * 2.0 ** (number - 1) * (0.75 + 0.25 * chance())
