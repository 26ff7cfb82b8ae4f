"""Define the response bodies of operations on usage and budgets."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel, UsdField


class UsageView(ResponseModel):
    """Sums of usage. `chatCount` counts distinct conversations that were active.

    `billableCostUsd` is there when it was requested. It excludes turns that ended in an error of the service or the
    provider. `unpricedRequests` is there when there were requests whose tokens are counted and whose cost is unknown.
    """

    prompt_tokens: CountField
    completion_tokens: CountField
    cost_usd: UsdField
    chat_count: CountField
    cache_read_tokens: CountField
    cache_creation_tokens: CountField
    billable_cost_usd: UsdField | None = None
    unpriced_requests: Annotated[int, Field(ge=1)] | None = None


class UsageByUserView(UsageView):
    user_id: str
    user_label: str


class UsageByScopeView(UsageView):
    scope: str


class UsageByModelView(UsageView):
    provider_id: str
    model_id: str


class UsageByDayView(UsageView):
    """The usage of a day in the requested time zone."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]


class AuditResponse(ResponseModel):
    """Usage by user, scope and model, the highest cost first; and by day, in order."""

    since: InstantField
    totals: UsageView
    by_user: list[UsageByUserView]
    by_scope: list[UsageByScopeView]
    by_model: list[UsageByModelView]
    by_day: list[UsageByDayView]


class BudgetPeriodView(ResponseModel):
    """A budget in one period. `heldUsd` is reserved for running requests. `leftUsd` is null without a limit."""

    spent_usd: UsdField
    held_usd: UsdField
    left_usd: UsdField | None


class BudgetLimitsView(ResponseModel):
    """Limits of a budget. Null is unlimited."""

    daily_usd: UsdField | None
    monthly_usd: UsdField | None


class BudgetView(BudgetLimitsView):
    today: BudgetPeriodView
    this_month: BudgetPeriodView


class UserBudgetView(BudgetView):
    user_id: str


class BudgetsResponse(ResponseModel):
    """The budgets. Days and months are UTC. `eachUser` applies to users who are not in `users`."""

    tenant: BudgetView
    each_user: BudgetLimitsView
    users: list[UserBudgetView]
    day_renews_at: InstantField
    month_renews_at: InstantField
    updated_at: InstantField | None = None
    updated_by: str | None = None


class PlanMeterView(ResponseModel):
    """What is counted in a month. `included` is null without a limit; `overageUsd` is what one more costs.

    `deliveredBytes` is what sites are delivered, of which more than is included is never refused. `mediaByteHours` are
    bytes of stored media times hours; one more of them is 10**9 bytes for a month, and `used` is null where nobody
    counts them, because usage is reported to no billing system.
    """

    name: str
    unit: Literal["uses", "bytes", "byteHours"]
    used: CountField | None
    included: CountField | None
    overage_usd: UsdField | None


class PlanQuotaView(ResponseModel):
    """What may exist at once, or how large one thing may be. `included` is null without a limit.

    `used` is what there is of it now; null without a limit, and of the size of one thing.
    """

    name: str
    used: CountField | None
    included: CountField | None


class PlanUsageResponse(ResponseModel):
    """The plan of the workspace.

    `endsAt` is when a trial, a grace period or the paid time of a cancelled plan ends. `models` are those that the
    studio's agent may run on; `*` stands for any text.
    """

    plan: str
    state: str
    ends_at: InstantField | None
    locked: bool
    features: list[str]
    models: list[str]
    month: str
    renews_at: InstantField
    meters: list[PlanMeterView]
    quotas: list[PlanQuotaView]
