"""Limit the rate of prompts: a leaky bucket counts those of a minute, also such as come at once, in any order.

    used_us   the microseconds of a minute that all prompts have ever used; only grows
    base_us   with `used_us` added: when everything that was used is free again (epoch microseconds)

When the bucket has become empty, `base_us` is what makes that instant now. All requests that read the same row within
the same second compute the same one. Whoever of them is first, the prompts of all add up in `used_us`. So the condition
is that the base is the one that was read or computed, and that not more is used than the limit allows from there
(decision 0288). `free_at` is the sum of both, as earlier versions of this service stored it.
"""

from typing import NamedTuple

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.is_count import is_count

_SECOND_US = 1_000_000
_MINUTE_US = 60 * _SECOND_US
_USED, _BASE, _FREE_AT = "used_us", "base_us", "free_at"


class PromptRate(NamedTuple):
    """The prompts of a minute, how many of them are left, and the seconds until all of them are free again."""

    limit: int
    remaining: int
    reset_seconds: int


@value_dataclass(frozen=True)
class PromptBucket:
    """The prompts of a row as it was read."""

    item: Item
    now: float
    per_minute: int

    def compute_wait(self) -> float:
        """Return the seconds until a prompt is free. After a pause, the prompts of a minute are free at once."""
        if self.per_minute < 1:
            return 60
        free_us = self._read_base() + self._read_used() + self._prompt_us - _MINUTE_US
        return 0 if free_us <= self._now_us else -(-free_us // _SECOND_US) - self.now

    def describe_rate(self, prompts: int) -> PromptRate:
        """Return what is left when so many more prompts are counted."""
        if self.per_minute < 1:
            return PromptRate(0, 0, 60)
        used_us = max(0, self._read_base() + self._read_used() - self._now_us) + prompts * self._prompt_us
        remaining = max(0, (_MINUTE_US - used_us) // self._prompt_us)
        return PromptRate(self.per_minute, remaining, -(-used_us // _SECOND_US))

    def count(self, update: CountRowUpdate, prompts: int) -> None:
        """Count prompts, on condition that they are within the limit."""
        base, used = self._read_base(), self._read_used()
        used_by_prompts = prompts * self._prompt_us
        update.set(_BASE, base)
        if self._is_healthy:
            update.require_as_read_or(self.item, _BASE, base)
            update.require_at_most(_USED, self._now_us + _MINUTE_US - used_by_prompts - base)
            update.add(_USED, used_by_prompts)
        else:
            update.require_as_read(self.item, [_BASE, _USED])
            update.set(_USED, used + used_by_prompts)
            update.remove([_FREE_AT])
        update.require_as_read(self.item, [_FREE_AT])

    def _read_used(self) -> int:
        used = self.item.get(_USED)
        return used if is_count(used) and is_count(self.item.get(_BASE)) else 0

    def _read_base(self) -> int:
        """Return the stored base, or the one of an empty bucket."""
        used, base = self._read_used(), self.item.get(_BASE)
        sums = [base + used if is_count(base) else 0, self.item.get(_FREE_AT)]
        # One that is more than two minutes ahead was not written by this rule.
        latest = self._now_us + 2 * _MINUTE_US
        return max([self._now_us, *(free_at for free_at in sums if is_count(free_at) and free_at <= latest)]) - used

    @property
    def _is_healthy(self) -> bool:
        """Whether the row has what this module writes."""
        stored = [name for name in (_USED, _BASE) if name in self.item]
        return _FREE_AT not in self.item and len(stored) != 1 and all(is_count(self.item[name]) for name in stored)

    @property
    def _now_us(self) -> int:
        """The second that has begun."""
        return int(self.now) * _SECOND_US

    @property
    def _prompt_us(self) -> int:
        return _MINUTE_US // self.per_minute
