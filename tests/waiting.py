"""Wait for conditions instead of moments, so that a busy machine makes tests slow and never wrong."""

import time
from collections.abc import Callable
from typing import TypeVar

BACKSTOP_SECONDS = 120.0
"""When a wait gives up. Far more than anything needs: only what never happens takes so long."""

T = TypeVar("T")


def wait_until(condition: Callable[[], T], description: str, timeout_seconds: float = BACKSTOP_SECONDS) -> T:
    """Return the first true value of `condition`.

    Raises:
        AssertionError: with `description`, when there is none within `timeout_seconds`.
    """
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {timeout_seconds} s: {description}")
