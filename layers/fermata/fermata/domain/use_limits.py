"""Define how much one user, or all users of a tenant together, may use (docs/limits.md)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UseLimits:
    """The limits of one user, of a tenant, or of a part of a tenant's limits."""

    prompts_per_minute: int
    turns_at_once: int
    readers_at_once: int
    uploads_per_day: int
    bytes_per_day: int
    """Of uploads as they are announced, and of prompts as they are sent."""


DEFAULT_USER_LIMITS = UseLimits(
    prompts_per_minute=30, turns_at_once=10, readers_at_once=20, uploads_per_day=5_000, bytes_per_day=20 * 10**9
)
DEFAULT_TENANT_LIMITS = UseLimits(
    prompts_per_minute=600, turns_at_once=200, readers_at_once=400, uploads_per_day=50_000, bytes_per_day=200 * 10**9
)


@dataclass(frozen=True)
class CallerLimits:
    """What limits a caller: its own limits, and those of its tenant."""

    user: UseLimits = DEFAULT_USER_LIMITS
    tenant: UseLimits = DEFAULT_TENANT_LIMITS


DEFAULT_CALLER_LIMITS = CallerLimits()
