"""Reserve what a request uses of its workspace's plan (decision 0481).

    <partition of the user or the workspace>   use#<digest>   a reservation

Under the same id a use is reserved once, however often its request is sent.
"""

import hashlib
from collections.abc import Mapping, Sequence

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_client import draw_pause
from fermata.aws.dynamodb_items_and_writes import (
    Item,
    ItemKey,
    Put,
    TransactionCanceled,
    Update,
    Write,
)
from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable
from fermata.domain.plan_refusals import build_month_refusal, check_plan_is_open, to_month
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.month_counts import (
    MonthUse,
    build_months_key,
    months_partition,
    read_month_count,
)

RESERVATION_PREFIX = "use#"
REPEATED_SECONDS = 86_400
"""How long the same id means the same use."""
_ROW_SECONDS = 40 * 86_400
_MAX_ATTEMPTS = 20


@value_dataclass(frozen=True)
class MeteredUse:
    """A use of the plan.

    Attributes:
        use_id: The same for every repetition of a request, as its Idempotency-Key; new for any other one.
        user: The user or API key that uses it; empty for nobody that is known.
        own_limit: How many this user or API key may use in a month; None for what the plan allows.
    """

    meter: PlanMeter
    use_id: str
    user: str = ""
    source: str = ""
    own_limit: int | None = None


@value_dataclass(frozen=True)
class UseReservation:
    """A use that is reserved, in a month.

    Attributes:
        nonce: Of the request that has reserved it.
        is_repeated: Whether an earlier request with the same id has reserved it.
    """

    month: str
    nonce: str
    is_repeated: bool = False


def reserve_metered_use(
    resources: Resources, tenant: str, subscription: Subscription, use: MeteredUse, beside: Sequence[Write] = ()
) -> UseReservation:
    """Count a use in the month that it is now in UTC, for the workspace and for its user, if both have room.

    Args:
        resources: Of the process.
        tenant: The workspace.
        subscription: Its plan.
        use: What is used.
        beside: Further writes of the same transaction, which are new rows.

    Raises:
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: The plan has nothing of this.
        PlanLimitReached: What a month has of it is used.
        ServiceUnavailable: Others changed the rows in every attempt.
    """
    check_plan_is_open(subscription, resources.clock.time())
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        counting = UseCounting.read(resources, tenant, subscription, use)
        if reserved := counting.find_reserved():
            return reserved
        counting.require_room()
        nonce = new_id()
        try:
            resources.tables.write_items(counting.build_reservation(nonce), *counting.build_counts(), *beside)
        except TransactionCanceled as refused:
            if (refused.reasons[0].item or {}).get("nonce") != nonce:
                resources.clock.sleep(draw_pause(attempt))
                continue  # it is there already if only the response of the write was lost
        return UseReservation(counting.month, nonce)
    raise ServiceUnavailable("Too many requests began at once. Send the same request again.", retry_after=1)


def is_use_reserved(resources: Resources, tenant: str, subscription: Subscription, use: MeteredUse) -> bool:
    """Return whether an earlier request with the same id has reserved a use.

    Args:
        resources: Of the process.
        tenant: The workspace.
        subscription: Its plan.
        use: The use.
    """
    return UseCounting.read(resources, tenant, subscription, use).find_reserved() is not None


def build_use_counts(
    resources: Resources, tenant: str, subscription: Subscription, use: MeteredUse
) -> Sequence[Update]:
    """Build the writes that count a use beside what it is for, and fail if it is one too many.

    Args:
        resources: Of the process.
        tenant: The workspace.
        subscription: Its plan.
        use: What is used. Its id counts for nothing: what it is for is written once.

    Raises:
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: The plan has nothing of this.
        PlanLimitReached: What a month has of it is used.
    """
    check_plan_is_open(subscription, resources.clock.time())
    counting = UseCounting.read(resources, tenant, subscription, use)
    counting.require_room()
    return counting.build_counts()


@value_dataclass(frozen=True)
class UseCounting:
    """One attempt to count a use, with its rows as they are now. Its writes may stand beside others."""

    resources: Resources
    tenant: str
    subscription: Subscription
    use: MeteredUse
    month: str
    now: float
    rows: Mapping[ItemKey, Item]

    @classmethod
    def read(cls, resources: Resources, tenant: str, subscription: Subscription, use: MeteredUse) -> "UseCounting":
        """Read the rows in which a use counts."""
        now = resources.clock.time()
        month = to_month(now)
        keys = [_build_reservation_key(resources, tenant, use), *_list_month_keys(resources, tenant, use, month)]
        return cls(resources, tenant, subscription, use, month, now, resources.tables.batch_get_by_keys(keys))

    def find_reserved(self) -> UseReservation | None:
        """Return the reservation of an earlier request with the same id."""
        row = self._reservation
        if row is None or row["repeated_until"] <= self.now:
            return None
        return UseReservation(row["month"], row["nonce"], is_repeated=True)

    def require_room(self) -> None:
        """Return if the workspace and the user may use one more.

        Raises:
            PlanUpgradeRequired: The plan has nothing of this.
            PlanLimitReached: The month is used.
        """
        for key, limit in self._list_limits():
            if limit is not None and read_month_count(self.rows.get(key), self.use.meter) >= limit:
                is_own = limit == self.use.own_limit and key.pk != months_partition(self.tenant)
                raise build_month_refusal(self.subscription, self.use.meter, limit, self.now, is_own_limit=is_own)

    def build_reservation(self, nonce: str) -> Put:
        """Build the write of the reservation, which is refused if the same use is reserved meanwhile."""
        key, row = self._reservation_key, self._reservation
        item: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "nonce": nonce, "month": self.month}
        item |= {"meter": self.use.meter.value, "repeated_until": int(self.now) + REPEATED_SECONDS}
        item["ttl"] = int(self.now) + _ROW_SECONDS
        if row is None:
            return Put(key.table, item, condition="attribute_not_exists(pk)")
        return Put(key.table, item, condition="nonce = :read", values={":read": row["nonce"]})

    def build_counts(self) -> list[Update]:
        """Build the writes that count the use."""
        counted = MonthUse(self.use.meter, self.use.source)
        return [counted.build_update(key, self.rows.get(key), limit, self.now) for key, limit in self._list_limits()]

    @property
    def _reservation_key(self) -> ItemKey:
        return _build_reservation_key(self.resources, self.tenant, self.use)

    @property
    def _reservation(self) -> Item | None:
        return self.rows.get(self._reservation_key)

    def _list_limits(self) -> list[tuple[ItemKey, int | None]]:
        limits = (self.subscription.get_limit(self.use.meter), self.use.own_limit)
        return list(zip(_list_month_keys(self.resources, self.tenant, self.use, self.month), limits, strict=False))


def _list_month_keys(resources: Resources, tenant: str, use: MeteredUse, month: str) -> list[ItemKey]:
    users = ("", use.user) if use.user else ("",)
    return [build_months_key(resources, tenant, user, month) for user in users]


def _build_reservation_key(resources: Resources, tenant: str, use: MeteredUse) -> ItemKey:
    partition = build_months_key(resources, tenant, use.user, "").pk
    digest = hashlib.sha256(f"{use.meter}\n{use.use_id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return ItemKey(resources.settings.bridges_table, partition, f"{RESERVATION_PREFIX}{digest}")
