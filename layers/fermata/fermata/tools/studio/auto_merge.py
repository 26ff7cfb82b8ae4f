"""Decide what follows a write: its change set is merged at once, or waits for a person."""

from fermata.content.change_sets.branch_names import PERMANENT_BRANCH, is_change_set
from fermata.content.documents.review_workflow import AUTO_MERGE_WORKFLOW
from fermata.tools.studio.project_permissions import ProjectPermissions
from fermata.tools.studio.tool_rules import TOOL_RULES, StudioWorkflow


def merges_at_once(tool_name: str, permissions: ProjectPermissions, *, workflow: str, branch: str) -> bool:
    """Return whether the change set that a call has made is merged at once.

    Args:
        tool_name: The tool that has written.
        permissions: What the caller may do: changes of owners and admins need no review.
        workflow: The workflow of the project, `auto-merge` or `review`, as far as its plan has reviews.
        branch: The change set; empty when the call wrote nothing, as after errors of validation.
    """
    kind = TOOL_RULES[tool_name].workflow
    if not branch or kind not in (StudioWorkflow.AUTO_MERGE, StudioWorkflow.WORKFLOW_DEPENDENT):
        return False
    if kind is StudioWorkflow.AUTO_MERGE or workflow == AUTO_MERGE_WORKFLOW:
        return True
    return permissions.merges_in_review


def refuse_branch(branch: str) -> str | None:
    """Return the code of the reason why a branch can be neither merged nor rejected, or None."""
    if branch == PERMANENT_BRANCH:
        return "permanent_branch"
    return None if is_change_set(branch) else "not_a_change_set"


MUTATION_EVENTS = {
    "save_content": "content.saved",
    "delete_content": "content.deleted",
    "save_model": "model.saved",
    "merge_branch": "branch.merged",
    "reject_branch": "branch.rejected",
}
"""The event that webhooks are told after a call of a tool."""
