"""Refuse what a workspace's plan does not allow, in words that say what to do."""

import math
from datetime import UTC, datetime

from fermata.domain.errors import PaymentRequired, TooManyRequests
from fermata.domain.plan_parts import PLAN_PARTS, list_plans_with
from fermata.domain.workspace_plan import PlanFeature, PlanMeter, PlanQuota, Subscription

_LOCKED = {
    "trial": "The trial of this workspace has ended. Choose a plan to go on.",
    "grace": "The last payment for this workspace has failed and the time to repeat it is over. "
    "Pay the open invoice to go on.",
    "cancelled": "The plan of this workspace was cancelled and has ended. Choose a plan to go on.",
}


class PlanLocked(PaymentRequired):
    """Nothing may be used until somebody pays."""

    code = "planLocked"


class PlanUpgradeRequired(PaymentRequired):
    """The plan has nothing of this, or no more of it, and waiting does not help."""

    code = "planUpgradeRequired"


class PlanLimitReached(TooManyRequests):
    """What the plan includes in a month is used."""

    code = "planLimitReached"


def check_plan_is_open(subscription: Subscription, now: float) -> None:
    """Check that the plan of a workspace is not locked.

    Raises:
        PlanLocked: It is.
    """
    if subscription.is_locked(now):
        raise PlanLocked(_LOCKED[subscription.state], reason="plan_locked")


def check_plan_quota(subscription: Subscription, quota: PlanQuota, wanted: int, now: float) -> None:
    """Check that so much of something may exist.

    Args:
        subscription: Of the workspace.
        quota: What is limited.
        wanted: How much there would be.
        now: In epoch seconds.

    Raises:
        PlanLocked: The plan is locked.
        PlanUpgradeRequired: It would be too much.
    """
    check_plan_is_open(subscription, now)
    limit = subscription.get_limit(quota)
    if limit is not None and wanted > limit:
        raise PlanUpgradeRequired(_describe_quota(subscription.plan, quota, limit, wanted), reason="plan_quota")


def _describe_quota(plan: str, quota: PlanQuota, limit: int, wanted: int) -> str:
    what = PLAN_PARTS[quota].words
    if limit == 0:
        return f"The plan {plan} has no {what}. Choose a larger plan to use them."
    if quota is PlanQuota.FILE_BYTES:
        return (
            f"The plan {plan} takes files of {limit:,} bytes at most, and this one has {wanted:,}. "
            "Make it smaller, or choose a larger plan."
        )
    text = f"The plan {plan} has room for {limit:,} {what}, and this would be {wanted:,}."
    return f"{text} Remove some, or choose a larger plan."


def check_plan_feature(subscription: Subscription, feature: PlanFeature, now: float) -> None:
    """Check that the plan of a workspace has a feature.

    Args:
        subscription: Of the workspace.
        feature: What is needed.
        now: In epoch seconds.

    Raises:
        PlanLocked: The plan is locked.
        PlanUpgradeRequired: It has not.
    """
    check_plan_is_open(subscription, now)
    if not subscription.has_feature(feature):
        plans = " or ".join(list_plans_with(feature))
        text = f"The plan {subscription.plan} has no {PLAN_PARTS[feature].words}. Choose the plan {plans} to use that."
        raise PlanUpgradeRequired(text, reason="plan_feature")


MODEL_REASON = "plan_model"
"""Of a refusal because of a language model."""


def check_plan_model(subscription: Subscription, model: str, now: float) -> None:
    """Check that the studio's agent may run on a language model.

    Args:
        subscription: Of the workspace.
        model: As its provider names it.
        now: In epoch seconds.

    Raises:
        PlanLocked: The plan is locked.
        PlanUpgradeRequired: The plan does not include the model.
    """
    check_plan_is_open(subscription, now)
    if not subscription.has_model(model):
        included = ", ".join(subscription.included_models)
        text = f"The plan {subscription.plan} does not include the model {model[:100]}. It includes {included}."
        raise PlanUpgradeRequired(f"{text} Choose one of these, or a larger plan.", reason=MODEL_REASON)


def build_month_refusal(
    subscription: Subscription, meter: PlanMeter, limit: int, now: float, *, is_own_limit: bool = False
) -> PlanLimitReached | PlanUpgradeRequired:
    """Return the error for what a month may not have any more.

    Args:
        subscription: Of the workspace.
        meter: What is counted.
        limit: How many a month may have.
        now: In epoch seconds.
        is_own_limit: Whether it is the limit of the caller's API key, and not of the workspace.
    """
    what = PLAN_PARTS[meter].words
    if limit == 0 and not is_own_limit:
        text = f"The plan {subscription.plan} has no {what}. Choose a larger plan to use them."
        return PlanUpgradeRequired(text, reason="plan_feature")
    renews = find_month_end(now)
    day = f"{datetime.fromtimestamp(renews, UTC):%Y-%m-%d}"
    if is_own_limit:
        text = (
            f"This key has used its {limit:,} {what} of the month. It may go on on {day} (UTC), or with more a month."
        )
    else:
        text = (
            f"The workspace has used the {limit:,} {what} that its plan {subscription.plan} includes in a month. "
            f"They renew on {day} (UTC). Choose a larger plan, or let more be billed, to go on before."
        )
    return PlanLimitReached(text, retry_after=max(1, math.ceil(renews - now)), reason="plan_month")


def to_month(epoch_seconds: float) -> str:
    """Return the month of an instant in UTC, such as 2026-11."""
    return f"{datetime.fromtimestamp(epoch_seconds, UTC):%Y-%m}"


def find_month_end(epoch_seconds: float) -> float:
    """Return when the month of an instant ends in UTC (epoch seconds)."""
    now = datetime.fromtimestamp(epoch_seconds, UTC)
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return datetime(year, month, 1, tzinfo=UTC).timestamp()
