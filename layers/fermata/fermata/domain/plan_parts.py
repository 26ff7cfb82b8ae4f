"""List what plans of a workspace limit and have, in the words that people read, and why nothing asks for some of it.

One table for every verb that needs a part of a plan, and for the test that each part is asked for somewhere.
"""

from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import WORKSPACE_PLANS, PlanFeature, PlanMeter, PlanQuota

PlanPartName = PlanMeter | PlanQuota | PlanFeature


@value_dataclass(frozen=True)
class PlanPart:
    """A part of a plan.

    Attributes:
        words: What people call it, so that "the plan has no ..." is a sentence.
        no_counterpart: Why nothing asks for it here; empty of what is asked for.
    """

    words: str
    no_counterpart: str = ""


PLAN_PARTS: dict[PlanPartName, PlanPart] = {
    PlanMeter.CHAT_MESSAGES: PlanPart("messages to the agent"),
    PlanMeter.API_MESSAGES: PlanPart("messages by API"),
    PlanMeter.MCP_CALLS: PlanPart("calls of MCP clients"),
    PlanMeter.FORM_SUBMISSIONS: PlanPart("submissions of forms"),
    PlanQuota.API_KEYS: PlanPart("keys of the Conversation API"),
    PlanQuota.FORMS: PlanPart("forms"),
    PlanQuota.MEDIA_BYTES: PlanPart("bytes of media"),
    PlanQuota.FILE_BYTES: PlanPart("bytes of a file"),
    PlanQuota.SEATS: PlanPart("members"),
    PlanFeature.REVIEW_WORKFLOW: PlanPart("reviews of changes"),
    PlanFeature.FORM_CAPTCHA: PlanPart("captchas in forms"),
    PlanFeature.FORM_AUTO_APPROVE: PlanPart("forms whose submissions are approved at once"),
    PlanFeature.OWN_MODEL_KEY: PlanPart("own keys of model providers"),
    PlanFeature.CONVERSATION_API: PlanPart("Conversation API"),
    PlanFeature.MEDIA_VARIANTS: PlanPart("presets of media of its own"),
    PlanFeature.MODEL_RESTRICTIONS: PlanPart("restrictions to some models or languages"),
}


def list_plans_with(feature: PlanFeature) -> list[str]:
    """Return the plans that are sold and have a feature, the smallest first."""
    return [plan.name for plan in WORKSPACE_PLANS.values() if plan.limits and feature in plan.features]
