"""Open the draft of a turn's conversation for its tools."""

from dataclasses import dataclass

from fermata.aws.resources import Resources
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.page_model import SiteDraft
from fermata.plans.plan_outcome import PlanOutcome
from fermata.plans.submit_plan import PlanSubmission, submit_plan


@dataclass(frozen=True)
class DraftSession:
    """The draft that the tools of one turn read and change."""

    resources: Resources
    location: DraftLocation

    def read(self) -> SiteDraft:
        """Return the draft as it is now."""
        return load_draft(self.resources, self.location).draft

    def submit(self, submission: PlanSubmission) -> PlanOutcome:
        """Take a plan, as `submit_plan`."""
        return submit_plan(self.resources, self.location, submission)
