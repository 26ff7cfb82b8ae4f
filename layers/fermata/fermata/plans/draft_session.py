"""Open the draft of a turn's conversation for its tools."""

from collections.abc import Callable
from dataclasses import replace

from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.drafts.multi_step_request import find_chain_after
from fermata.plans.drafts.pending_plan import BuildListing, list_nowhere
from fermata.plans.page_model import SiteDraft
from fermata.plans.plan_outcome import PlanOutcome
from fermata.plans.plan_submission import PlanSubmission
from fermata.plans.submit_plan import submit_plan


@value_dataclass(frozen=True)
class DraftSession:
    """The draft that the tools of one turn read and change.

    Attributes:
        build_listing: Lists a plan that has to wait for whoever may approve it.
        make_approval_id: Returns the id under which it is listed, given the key of its call.
    """

    resources: Resources
    location: DraftLocation
    build_listing: BuildListing = list_nowhere
    make_approval_id: Callable[[str], str] = lambda _effect_key: ""

    def read(self) -> SiteDraft:
        """Return the draft as it is now."""
        return load_draft(self.resources, self.location).draft

    def submit(self, submission: PlanSubmission) -> PlanOutcome:
        """Take a plan, as `submit_plan`. If it is accepted and steps are left, the outcome says which is next."""
        listed = replace(submission, approval_id=self.make_approval_id(submission.effect_key))
        outcome = submit_plan(self.resources, self.location, listed, self.build_listing)
        if outcome.status not in ("applied", "plan_ready"):
            return outcome
        chain = find_chain_after(self.resources, self.location, submission.plan_id, submission.place)
        return outcome.model_copy(update={"continuation": chain.to_continuation()}) if chain else outcome
