"""Check and count prompts to the studio's agent for the plan of their workspace, whatever protocol their client speaks.

Prompts of the studio's own clients and of keys count with limits that only their routes know, and are not counted here.
"""

from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription
from fermata.domain.caller import Caller
from fermata.domain.plan_refusals import check_plan_model
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.turns.start.turn_prompt import TurnPrompt

PLANNED_SCOPE = "studio"
"""The scope whose prompts are the messages of a plan."""


def check_model_is_included(resources: Resources, caller: Caller, prompt: TurnPrompt, model: str) -> None:
    """Check that the plan of the workspace includes the model that a prompt to the studio's agent asks.

    Args:
        resources: Of the process.
        caller: Who sends it.
        prompt: The prompt. Those to other agents run on any model, and so does a direct call, which asks none.
        model: As its provider names it.

    Raises:
        PlanLocked: The plan is locked.
        PlanUpgradeRequired: It does not.
    """
    if prompt.scope == PLANNED_SCOPE and prompt.direct_call is None:
        check_plan_model(read_subscription(resources, caller.tenant), model, resources.clock.time())


def find_monthly_messages(resources: Resources, caller: Caller, prompt: TurnPrompt) -> MonthlyMessages | None:
    """Return the messages of the month that a prompt is one of; None if it is none, or counts by itself.

    Args:
        resources: Of the process.
        caller: Who sends it.
        prompt: The prompt.
    """
    if prompt.scope != PLANNED_SCOPE or prompt.protocol == "studio" or prompt.direct_call is not None:
        return None
    return MonthlyMessages(resources, caller.tenant, caller.user, read_subscription(resources, caller.tenant))
