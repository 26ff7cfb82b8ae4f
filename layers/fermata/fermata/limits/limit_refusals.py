"""Refuse what exceeds a limit, in words that name the limit, what it is, and when it is free again."""

import math
from typing import Literal

from fermata.domain.errors import PayloadTooLarge, TooManyRequests
from fermata.domain.use_limits import CallerLimits
from fermata.limits.usage_counters import LimitReached, Use

LimitOwner = Literal["user", "tenant"]
_RETRY_SECONDS = 5
"""Where nobody knows when a limit is free again, because a turn or a reader has to end first."""
_WORDS: dict[str, dict[LimitOwner, str]] = {
    "prompts": {
        "user": "You have sent as many prompts as you may in a minute ({limit}). The next one is possible in {wait}.",
        "tenant": "Your workspace has sent as many prompts as it may in a minute ({limit}). The next one is possible "
        "in {wait}.",
    },
    "turns": {
        "user": "As many of your turns are running as may run at once ({limit}). Wait until one ends, or cancel one.",
        "tenant": "As many turns of your workspace are running as may run at once ({limit}). Wait until one ends.",
    },
    "readers": {
        "user": "You follow turns with as many connections as you may have at once ({limit}). Close one: its place is "
        "free within two minutes.",
        "tenant": "Your workspace follows turns with as many connections as it may have at once ({limit}). The place "
        "of one that is closed is free within two minutes.",
    },
    "uploads": {
        "user": "You have made as many uploads as you may in a day ({limit}). The next one is possible in {wait}.",
        "tenant": "Your workspace has made as many uploads as it may in a day ({limit}). The next one is possible in "
        "{wait}.",
    },
    "stored_bytes": {
        "user": "You may store {limit} bytes a day, and this would be more. You may store more in {wait}.",
        "tenant": "Your workspace may store {limit} bytes a day, and this would be more. It may store more in {wait}.",
    },
}


def build_limit_refusal(reached: LimitReached, owner: LimitOwner) -> TooManyRequests:
    """Return the error for a limit that is reached. Its `reason` is that of the security event."""
    seconds = _RETRY_SECONDS if reached.free_in is None else max(1, math.ceil(reached.free_in))
    words = _WORDS[reached.reason][owner].format(limit=f"{reached.limit:,}", wait=describe_wait(seconds))
    refusal = TooManyRequests(words, retry_after=seconds, reason=reached.reason)
    if reached.reason == "prompts":
        refusal.limit, refusal.window_seconds = reached.limit, 60
    return refusal


def check_use_fits_limits(use: Use, limits: CallerLimits) -> None:
    """Check that an upload or a prompt is not larger than all of a day, so that waiting could help.

    Raises:
        PayloadTooLarge: It never fits.
    """
    for owner, own_limits in (("user", limits.user), ("tenant", limits.tenant)):
        who = "You" if owner == "user" else "Your workspace"
        if use.uploads > own_limits.uploads_per_day:
            raise PayloadTooLarge(f"{who} may not upload anything.", reason="uploads")
        if use.stored_bytes > own_limits.bytes_per_day:
            bytes_of_day = f"{own_limits.bytes_per_day:,} bytes a day"
            text = f"{who} may store {bytes_of_day}, and this alone has {use.stored_bytes:,}."
            raise PayloadTooLarge(text, reason="stored_bytes")


def describe_wait(seconds: int) -> str:
    """Return the time in words; of more than two minutes, in hours and minutes."""
    if seconds <= 120:
        return f"{seconds} second{'s' * (seconds != 1)}"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} minutes"
