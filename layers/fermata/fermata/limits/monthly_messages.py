"""Count the messages of a month, for whom a number of them is allowed, in the transaction that starts a turn.

    t#<tenant>#limits#user#<hash>    messages#<month>    used

The count is written with START under the condition that one more is allowed: of many requests at once, as many begin as
there is room for, and a turn that does not start counts nothing.
"""

from dataclasses import dataclass

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ItemKey, Update
from fermata.aws.resources import Resources
from fermata.domain.errors import TooManyRequests
from fermata.limits.is_count import is_count
from fermata.limits.limit_keys import build_user_limits_key

_KEPT_SECONDS = 70 * 86_400
"""How long the row of a month is kept: until the month after it is over."""


@dataclass(frozen=True)
class MonthlyMessages:
    """The messages that one user, or one key, may send in a month.

    Attributes:
        user: The user, or the name under which a key acts.
        limit: How many are allowed in a calendar month (UTC).
    """

    resources: Resources
    tenant: str
    user: str
    limit: int

    @property
    def month(self) -> str:
        """The month that counts now, such as `2026-11`."""
        return self.resources.clock.now_iso()[:7]

    def count_used(self) -> int:
        """Return how many messages were sent in this month."""
        item = self.resources.tables.get_item_by_key(self._key) or {}
        used = item.get("used")
        return used if is_count(used) else 0

    def require_room(self) -> None:
        """Return if one more message is allowed in this month.

        Raises:
            TooManyRequests: As many were sent as are allowed.
        """
        if self.count_used() >= self.limit:
            raise self.build_refusal()

    def build_refusal(self) -> TooManyRequests:
        """Return the error for a month whose messages are all sent."""
        seconds = self._count_seconds_left()
        words = f"This key has sent as many messages as it may in a month ({self.limit:,}). "
        next_month = iso_from_epoch(self.resources.clock.time() + seconds)[:10]
        return TooManyRequests(f"{words}The next one is possible on {next_month}.", retry_after=seconds, reason="month")

    def build_write(self) -> Update:
        """Build the write that counts one message, and fails if it is one too many."""
        return Update(
            *self._key,
            "SET #ttl = :ttl ADD used :one",
            values={":one": 1, ":limit": self.limit, ":ttl": int(self.resources.clock.time()) + _KEPT_SECONDS},
            names={"#ttl": "ttl"},
            condition="attribute_not_exists(used) OR used < :limit",
        )

    @property
    def _key(self) -> ItemKey:
        return build_user_limits_key(self.resources, self.tenant, self.user, f"messages#{self.month}")

    def _count_seconds_left(self) -> int:
        """Return the seconds until the next month, at least one."""
        now = int(self.resources.clock.time())
        midnight = now - now % 86_400 + 86_400
        while iso_from_epoch(midnight)[:7] == self.month:
            midnight += 86_400
        return max(1, midnight - now)
