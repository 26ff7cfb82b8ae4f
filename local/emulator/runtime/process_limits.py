"""Limit the processes that run functions: their number, their growth, and how long invocations wait for one."""

import json
import os
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class ProcessLimits:
    """How many processes run functions, how fast their number grows, and how long invocations wait for one.

    Args:
        per_function: Most processes of one function.
        total: Most processes of all functions. A function that has none may always start one, so that no function
            waits for another.
        immediate: Processes of one function that start without waiting for a busy one to become free.
        patience_seconds: Beyond `immediate`, a process starts only when none has become free for so long, times the
            number of processes that the function has, and times the processes that want each processor.
        max_patience_seconds: The longest time without a free process after which another one starts.
        interval_seconds: Beyond `immediate`, the least time between two starts.
        queue_seconds: How long a synchronous invocation waits for a process. Then it is throttled.
        idle_seconds: How long a process stays idle before it ends.
    """

    per_function: int = 56
    total: int = 64
    immediate: int = 8
    patience_seconds: float = 0.03
    max_patience_seconds: float = 1.7
    interval_seconds: float = 0.01
    queue_seconds: float = 25.0
    idle_seconds: float = 60.0

    @classmethod
    def from_environment(cls) -> Self:
        """Read `FUNCTION_LIMITS`, a JSON object with any of the fields."""
        return cls(**json.loads(os.environ.get("FUNCTION_LIMITS", "{}")))
