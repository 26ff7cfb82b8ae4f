"""Define the plans of a workspace as data: what each of them allows in a month and at once, and which features it has.

A workspace is a tenant; its projects are content spaces (decision 0480).
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator

from fermata.domain.base import RecordModel
from fermata.domain.value_dataclass import value_dataclass

SubscriptionState = Literal["active", "trial", "grace", "cancelled"]
UNLIMITED_PLAN = "community"
_MAX_MODELS, _MAX_MODEL_CHARS, _MAX_STARS = 50, 200, 4


class PlanMeter(StrEnum):
    """What is counted in a month in UTC."""

    CHAT_MESSAGES = "chatMessages"
    API_MESSAGES = "apiMessages"
    MCP_CALLS = "mcpCalls"
    FORM_SUBMISSIONS = "formSubmissions"


class PlanQuota(StrEnum):
    """What may exist at once, or how large one thing may be."""

    API_KEYS = "apiKeys"
    FORMS = "forms"
    MEDIA_BYTES = "mediaBytes"
    FILE_BYTES = "fileBytes"
    SEATS = "seats"


class PlanFeature(StrEnum):
    """What some plans have and others have not."""

    REVIEW_WORKFLOW = "reviewWorkflow"
    FORM_CAPTCHA = "formCaptcha"
    FORM_AUTO_APPROVE = "formAutoApprove"
    OWN_MODEL_KEY = "ownModelKey"
    CONVERSATION_API = "conversationApi"
    MEDIA_VARIANTS = "mediaVariants"
    MODEL_RESTRICTIONS = "modelRestrictions"


PlanLimits = Mapping[PlanMeter | PlanQuota, int]


ALL_MODELS = ("*",)


@value_dataclass(frozen=True)
class WorkspacePlan:
    """A plan. What its limits do not name is unlimited.

    Attributes:
        models: The language models that the studio's agent may run on, as names in which `*` stands for any text.
        traffic_bytes: What sites are delivered in a month without being billed for it. More is never refused.
    """

    name: str
    limits: PlanLimits = field(default_factory=dict)
    features: frozenset[PlanFeature] = frozenset(PlanFeature)
    models: tuple[str, ...] = ALL_MODELS
    traffic_bytes: int | None = None


_MB, _GB = 10**6, 10**9
_LIMITED = (*PlanMeter, *PlanQuota)
# chat messages, API messages, MCP calls, submissions; API keys, forms, bytes of media, bytes of a file, seats
_FREE = (0, 0, 0, 0, 0, 0, 0, 0, 1)
_STARTER = (150, 100, 5_000, 100, 0, 1, 1 * _GB, 5 * _MB, 3)
_PRO = (1_500, 3_000, 150_000, 3_000, 15, 15, 15 * _GB, 50 * _MB, 25)
_STARTER_FEATURES = frozenset({
    PlanFeature.REVIEW_WORKFLOW, PlanFeature.FORM_CAPTCHA, PlanFeature.FORM_AUTO_APPROVE,
})  # fmt: skip
_STARTER_MODELS = ("*haiku*", "*-mini*", "*-nano*", "*-flash*", "*-lite*", "*-small*", "*demo*")
"""The small models of each family: a message of a large one costs several times what this plan has for it."""
WORKSPACE_PLANS = {
    plan.name: plan
    for plan in (
        WorkspacePlan(UNLIMITED_PLAN),
        WorkspacePlan("free", dict(zip(_LIMITED, _FREE, strict=True)), frozenset(), traffic_bytes=0),
        WorkspacePlan(
            "starter", dict(zip(_LIMITED, _STARTER, strict=True)), _STARTER_FEATURES, _STARTER_MODELS, 2 * _GB
        ),
        WorkspacePlan("pro", dict(zip(_LIMITED, _PRO, strict=True)), traffic_bytes=60 * _GB),
        WorkspacePlan("enterprise", {PlanQuota.MEDIA_BYTES: 100 * _GB, PlanQuota.FILE_BYTES: 100 * _MB}),
    )
}
OVERAGE_USD: dict[PlanMeter | PlanQuota, float] = {
    PlanMeter.CHAT_MESSAGES: 0.03,
    PlanMeter.API_MESSAGES: 0.05,
    PlanMeter.MCP_CALLS: 0.005,
    PlanMeter.FORM_SUBMISSIONS: 0.01,
    PlanQuota.MEDIA_BYTES: 0.25,
}
"""What one more costs where a workspace pays for what exceeds its plan; of media, 10**9 bytes for a month."""


class Subscription(RecordModel):
    """Which plan a workspace has, and how it stands with it.

    Attributes:
        plan: A name of `WORKSPACE_PLANS`. One that only a newer release knows has no limits.
        until: When a trial, a grace period or the paid time of a cancelled plan ends (epoch seconds); None for now.
        overage: Whether more messages, calls, submissions and media than the plan allows are admitted, and billed.
        limits: Limits of this workspace in place of the plan's; None for none.
        models: The models of this workspace in place of the plan's; empty for the plan's.
    """

    plan: str = UNLIMITED_PLAN
    state: SubscriptionState = "active"
    until: int | None = None
    overage: bool = False
    limits: dict[str, int | None] = Field(default_factory=dict)
    models: tuple[str, ...] = Field(default=(), max_length=_MAX_MODELS)

    @field_validator("models")
    @classmethod
    def _check_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if any(not 0 < len(name) <= _MAX_MODEL_CHARS or name.count("*") > _MAX_STARS for name in models):
            raise ValueError(
                f"models: names of 1 to {_MAX_MODEL_CHARS} characters are expected, with {_MAX_STARS} * at most"
            )
        return models

    @field_validator("limits")
    @classmethod
    def _check_limits(cls, limits: dict[str, int | None]) -> dict[str, int | None]:
        for name, limit in limits.items():
            if limit is not None and not 0 <= limit <= 10**15:
                raise ValueError(f"{name}: a number from 0 to 10**15 is expected")
        return limits

    @property
    def workspace_plan(self) -> WorkspacePlan:
        """The plan."""
        return WORKSPACE_PLANS.get(self.plan, WORKSPACE_PLANS[UNLIMITED_PLAN])

    def is_locked(self, now: float) -> bool:
        """Return whether nothing of the plan may be used any more at `now` (epoch seconds)."""
        return self.state != "active" and (self.until or 0) <= now

    def get_limit(self, name: PlanMeter | PlanQuota) -> int | None:
        """Return a limit; None for none. Where more is billed there is none, unless the plan has nothing of it."""
        limit = self.get_included(name)
        return None if limit and self.overage and name in OVERAGE_USD else limit

    def get_included(self, name: PlanMeter | PlanQuota) -> int | None:
        """Return what the plan includes; None for any number."""
        if name.value in self.limits:
            return self.limits[name.value]
        return self.workspace_plan.limits.get(name)

    @property
    def included_models(self) -> tuple[str, ...]:
        """The language models that the studio's agent may run on, as names in which `*` stands for any text."""
        return self.models or self.workspace_plan.models

    def has_model(self, model: str) -> bool:
        """Return whether the studio's agent may run on a language model, whatever letters are capital ones."""
        return any(_matches_model(model.lower(), pattern.lower()) for pattern in self.included_models)

    def has_feature(self, feature: PlanFeature) -> bool:
        """Return whether the plan has a feature."""
        return feature in self.workspace_plan.features

    def to_view(self, now: float) -> dict[str, Any]:
        """Return the JSON form for people."""
        features = sorted(self.workspace_plan.features)
        return {**self.to_known(exclude=frozenset({"limits"})), "locked": self.is_locked(now), "features": features}


def _matches_model(model: str, pattern: str) -> bool:
    """Return whether a name fits a pattern, in time in proportion to both: each part is found as early as possible."""
    first, *others = pattern.split("*")
    if not others:
        return model == pattern
    *middle, last = others
    if not (model.startswith(first) and model.endswith(last) and len(model) >= len(first) + len(last)):
        return False
    rest, position = model[: len(model) - len(last)], len(first)
    for part in middle:
        found = rest.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True
