"""Find the plan that a model has written into its text instead of submitting it."""

from fermata.domain.blocks import ToolCallBlock
from fermata.plans.json_repair_ladder import read_broken_json
from fermata.plans.normalization.normalize_plan import find_operations
from fermata.tools.planner.toolset import SUBMIT_PLAN_TOOL


def find_plan_in_text(text: str, call_id: str) -> ToolCallBlock | None:
    """Return the call that submits the plan of a text, or None if the text is none.

    Args:
        text: All that the model has written.
        call_id: The id of the call.
    """
    repaired = read_broken_json(text)
    if repaired is None:
        return None
    is_plan = "intent" in repaired.value or bool(find_operations(repaired.value))
    return ToolCallBlock(tool_call_id=call_id, tool_name=SUBMIT_PLAN_TOOL, input=repaired.value) if is_plan else None
