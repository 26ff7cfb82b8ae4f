"""Count a message to the agent against its workspace's plan and its sender's own limit, in the transaction of START.

Both counts are written with START under the condition that one more is allowed: of many requests at once, as many begin
as there is room for. A turn that does not start counts nothing, and a repeated request joins its turn before it counts.
"""

from collections.abc import Sequence
from typing import Literal

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.domain.plan_refusals import to_month
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.metered_uses import MeteredUse, build_use_counts
from fermata.limits.month_counts import build_months_key, read_month_count

MessageSource = Literal["studio", "api"]
"""Where a message comes from: the studio's chat, or the Conversation API."""


@value_dataclass(frozen=True)
class MonthlyMessages:
    """The messages that a workspace, and one user or key of it, may send in a month in UTC.

    Attributes:
        user: The user, or the name under which a key acts.
        source: Those of the API are counted by themselves.
        own_limit: How many the key may send; None for what the plan allows.
    """

    resources: Resources
    tenant: str
    user: str
    subscription: Subscription
    source: MessageSource = "studio"
    own_limit: int | None = None

    def count_used(self) -> int:
        """Return how many messages the user or key has sent in this month."""
        month = to_month(self.resources.clock.time())
        key = build_months_key(self.resources, self.tenant, self.user, month)
        return read_month_count(self.resources.tables.get_item_by_key(key), self._use.meter)

    def require_room(self) -> None:
        """Return if one more message is allowed in this month. Raises as `build_writes`."""
        self.build_writes()

    def build_writes(self) -> Sequence[Update]:
        """Build the writes that count one message, and fail if it is one too many.

        Raises:
            PlanLocked: Nobody pays for the workspace.
            PlanUpgradeRequired: The plan has no such messages.
            PlanLimitReached: Those of the month are sent.
        """
        return build_use_counts(self.resources, self.tenant, self.subscription, self._use)

    @property
    def _use(self) -> MeteredUse:
        meter = PlanMeter.API_MESSAGES if self.source == "api" else PlanMeter.CHAT_MESSAGES
        return MeteredUse(meter, "", self.user, self.source, self.own_limit)
