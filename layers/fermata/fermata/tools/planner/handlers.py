"""Handle the tools that read the pages of a draft and submit a plan."""

from typing import Any

from fermata.domain.errors import Conflict
from fermata.domain.events import EditPlanEvent, Event
from fermata.domain.tools import ToolOutput
from fermata.plans.draft_session import DraftSession
from fermata.plans.drafts.multi_step_request import read_steps
from fermata.plans.editor_state import read_editor_state
from fermata.plans.plan_submission import PlanSubmission
from fermata.tools.tool import ToolContext, ToolFailure, ToolInput

MAX_REFUSED_PLANS = 2
"""A plan may be corrected once. The second one that is refused ends the turn."""
REFUSED_STATUS = "validation_error"


def list_pages(_tool_input: ToolInput, context: ToolContext) -> dict[str, Any]:
    """List the pages of the draft with their blocks, without props."""
    draft = _open_draft(context).read()
    pages = [
        {
            "slug": page.slug,
            "title": page.title,
            "blocks": [{"id": block.id, "type": block.type} for block in page.blocks],
        }
        for page in draft.pages
    ]
    return {"pages": pages, "config": draft.config.to_wire()}


def get_page(tool_input: Any, context: ToolContext) -> dict[str, Any]:
    """Return a page of the draft with all of its blocks."""
    draft = _open_draft(context).read()
    page = draft.find_page(tool_input.slug)
    if page is None:
        raise ToolFailure(f"There is no page {tool_input.slug}. The pages are {', '.join(draft.slugs) or 'none'}.")
    return page.to_wire()


def submit_edit_plan(tool_input: ToolInput, context: ToolContext) -> ToolOutput:
    """Take a plan. What became of it is the data; a plan that is refused is a failure that says what to correct."""
    editor = read_editor_state(context.snapshot)
    submission = PlanSubmission(
        candidate=tool_input.model_dump(exclude_none=True),
        default_slug=editor.slug,
        message=editor.message or context.read_prompt(),
        effect_key=context.effect_key,
        turn=context.turn,
        is_only_planned=editor.only_plan,
        allows_structure=editor.allow_structure,
        next_steps=read_steps(getattr(tool_input, "next_steps", None)),
        chain_id=editor.chain_id,
        chain_step=editor.chain_step,
    )
    try:
        outcome = _open_draft(context).submit(submission)
    except Conflict as refusal:  # its words say how to go on
        raise ToolFailure(refusal.message) from None
    error = None if outcome.is_accepted else outcome.feedback or outcome.summary
    return ToolOutput(ok=outcome.is_accepted, data=outcome.to_wire(), error=error)


def build_plan_events(output: ToolOutput, refused_count: int) -> tuple[Event, ...]:
    """Return the event that keeps what became of a plan in the turn's log.

    Args:
        output: The output of `submit_edit_plan`.
        refused_count: How many plans were refused in this turn before.
    """
    if not isinstance(output.data, dict) or "status" not in output.data:
        return ()  # the call itself has failed, and no plan was looked at
    is_final = output.ok or refused_count + 1 >= MAX_REFUSED_PLANS
    return (EditPlanEvent(outcome=output.data, is_final=is_final),)


def _open_draft(context: ToolContext) -> DraftSession:
    drafts = context.open_draft()
    if drafts is None:
        raise ToolFailure("There is no draft here.")
    return drafts
