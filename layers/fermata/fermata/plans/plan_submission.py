"""Define a plan as a model has submitted it."""

from dataclasses import dataclass
from typing import Any

from fermata.plans.drafts.multi_step_request import StepPlace
from fermata.plans.drafts.pending_plan import make_pending_plan_id


@dataclass(frozen=True)
class PlanSubmission:
    """A plan as a model has submitted it, and what its user wants.

    Attributes:
        is_only_planned: Hold the plan, whatever it changes.
        allows_structure: Whether the editor lets plans add, remove and move blocks and items.
        effect_key: The same for every repetition of the call.
        next_steps: What plans after this one are to do, if the request is too large for one.
        chain_id: Of the chain of plans whose step this is; empty for none.
        chain_step: The number of that step.
        approval_id: Of the approval under which the plan is listed if it has to wait; empty to list it nowhere.
    """

    candidate: Any
    default_slug: str
    message: str
    effect_key: str
    turn: str = ""
    is_only_planned: bool = False
    allows_structure: bool = True
    next_steps: tuple[str, ...] = ()
    chain_id: str = ""
    chain_step: int = 0
    approval_id: str = ""

    @property
    def plan_id(self) -> str:
        """Of the plan, the same for every repetition of its call."""
        return make_pending_plan_id(self.effect_key)

    @property
    def place(self) -> StepPlace:
        """Where the plan stands in a chain of plans."""
        return StepPlace(self.next_steps, self.chain_id, self.chain_step)
