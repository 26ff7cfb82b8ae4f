"""Say whether changes of a space wait for a review: the settings of its project say so, and their head repeats it.

So a write knows it from the rows that it reads anyway.
"""

from collections.abc import Mapping
from typing import Any

from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription
from fermata.domain.errors import Forbidden
from fermata.domain.workspace_plan import PlanFeature

PROJECT_MODEL_ID = "studio-project"
PROJECT_DOCUMENT_ID = "main"
"""The document with the settings of a project: `config`, `context` and `emptyFiles`."""
REVIEW_WORKFLOW = "review"
AUTO_MERGE_WORKFLOW = "auto-merge"


class ReviewRequired(Forbidden):
    """Changes of this person wait until somebody reviews them."""

    code = "reviewRequired"

    def __init__(self) -> None:
        super().__init__(
            "Forbidden: changes of this space are reviewed before they are merged. Make yours in a change set."
        )


def get_workflow(settings: Mapping[str, Any]) -> str:
    """Return the workflow that the settings of a project name, `review` or `auto-merge`.

    One that nobody knows is `review`, as for the tools of the studio: nothing is live that somebody wants to look at.
    """
    config = settings.get("config")
    named = config.get("workflow") if isinstance(config, dict) else None
    return AUTO_MERGE_WORKFLOW if not named or named == AUTO_MERGE_WORKFLOW else REVIEW_WORKFLOW


def has_reviews(resources: Resources, tenant: str) -> bool:
    """Return whether the plan of a workspace has reviews. Without, changes are live at once."""
    return read_subscription(resources, tenant).has_feature(PlanFeature.REVIEW_WORKFLOW)
