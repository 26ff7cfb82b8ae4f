"""Define why a tool call may need the approval of a person."""

from enum import StrEnum


class ApprovalReason(StrEnum):
    """Why a call waits for a person. The values are stored, and clients read them."""

    TOOL = "tool"
    """The tool itself asks for it."""
    RULE = "rule"
    """A rule of the agent or of the tenant asks for it."""
    OUTSIDE_CONTENT = "outsideContent"
    """It writes after the model has read what people outside of the workspace may have written."""
    NEW_TOOL = "newTool"
    """The tenant has never approved this tool as it is now."""
    TURN_COST = "turnCost"
    """The turn has cost more than it may without being asked about."""
    DESTRUCTIVE_PLAN = "destructivePlan"
    """It is an edit plan that removes pages or blocks, or changes several pages."""
    PLAN_FIRST = "planFirst"
    """It is an edit plan that its user wants to see before it is applied."""
