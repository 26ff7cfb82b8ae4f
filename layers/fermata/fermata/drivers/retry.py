"""Asks again when a provider failed before anything could be seen."""

import random
from collections.abc import Callable, Iterator

from fermata.drivers.driver import Driver, Endpoint
from fermata.drivers.line import Line
from fermata.words.errors import ProviderError
from fermata.words.model import Ask, Piece

TRIES = 3
LONGEST_WAIT = 30.0
FIRST_WAIT = 1.0


def with_retries(
    driver: Driver,
    ask: Ask,
    line: Line,
    endpoint: Endpoint,
    on_failed: Callable[[int, ProviderError], None],
    *,
    tries: int = TRIES,
    wait: Callable[[float], None] | None = None,
    chance: Callable[[], float] = random.random,
) -> Iterator[Piece]:
    """`driver.stream`, tried up to `tries` times while it has produced nothing.

    `on_failed(try, error)` is told of each failed request that another one follows, first of all; the last failure is
    raised. Once a piece is out, the caller decides what a failure means. A hang-up ends the waits too.
    """
    with line.call():
        for number in range(1, max(1, tries) + 1):
            silent = True
            try:
                for piece in driver.stream(ask, line, endpoint):
                    silent = False
                    yield piece
            except ProviderError as error:
                pause = None if number >= tries else _pause(number, error, chance)
                if not silent or pause is None or pause > line.remaining():
                    raise
                on_failed(number, error)
                (wait or line.wait)(pause)
            else:
                return


def _pause(number: int, error: ProviderError, chance: Callable[[], float]) -> float | None:
    """Seconds before the next try, or None when there is no use in one."""
    if not error.retryable:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_WAIT else None
    return FIRST_WAIT * 2.0 ** (number - 1) * (0.75 + 0.25 * chance())
