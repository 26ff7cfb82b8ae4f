"""Define how much one user, or all users of a tenant together, may use (docs/limits.md)."""

from dataclasses import fields, replace
from functools import cache

from pydantic import Field, ValidationError

from fermata.domain.base import RecordModel
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
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


@value_dataclass(frozen=True)
class CallerLimits:
    """What limits a caller: its own limits, and those of its tenant."""

    user: UseLimits = DEFAULT_USER_LIMITS
    tenant: UseLimits = DEFAULT_TENANT_LIMITS


DEFAULT_CALLER_LIMITS = CallerLimits()


class UseLimitChoices(RecordModel):
    """Limits that an operator has chosen, for a deployment or a tenant. One that is None was not chosen."""

    user_prompts_per_minute: int | None = Field(default=None, ge=1, le=100_000)
    user_turns_at_once: int | None = Field(default=None, ge=1, le=1_000)
    user_readers_at_once: int | None = Field(default=None, ge=1, le=1_000)
    user_uploads_per_day: int | None = Field(default=None, ge=0, le=10**9)
    user_bytes_per_day: int | None = Field(default=None, ge=10**6, le=10**15)
    tenant_prompts_per_minute: int | None = Field(default=None, ge=1, le=100_000)
    tenant_turns_at_once: int | None = Field(default=None, ge=1, le=20_000)
    tenant_readers_at_once: int | None = Field(default=None, ge=1, le=20_000)
    tenant_uploads_per_day: int | None = Field(default=None, ge=0, le=10**9)
    tenant_bytes_per_day: int | None = Field(default=None, ge=10**9, le=10**15)

    def apply_to(self, limits: CallerLimits) -> CallerLimits:
        """Return the limits with those that were chosen in place of theirs."""
        return CallerLimits(
            user=self._replace_limits(limits.user, "user_"), tenant=self._replace_limits(limits.tenant, "tenant_")
        )

    def _replace_limits(self, limits: UseLimits, prefix: str) -> UseLimits:
        chosen = {field.name: getattr(self, prefix + field.name) for field in fields(UseLimits)}
        return replace(limits, **{name: limit for name, limit in chosen.items() if limit is not None})


USE_LIMIT_NAMES = tuple(UseLimitChoices.model_fields)


@cache
def parse_use_limits(text: str) -> CallerLimits:
    """Return the default limits with those of `NAME=NUMBER,NAME=NUMBER` in place of theirs.

    Raises:
        ValueError: A name is unknown, or a number is missing or out of range.
    """
    chosen = dict(part.partition("=")[::2] for part in text.split(",") if text)
    if unknown := sorted(chosen.keys() - set(USE_LIMIT_NAMES)):
        raise ValueError(f"{', '.join(map(repr, unknown))} is none of {', '.join(USE_LIMIT_NAMES)}")
    try:
        return UseLimitChoices.model_validate(chosen).apply_to(DEFAULT_CALLER_LIMITS)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{first['loc'][0]}: {first['msg'].lower()}") from error
