"""Break a request into steps, and name for each the tools whose descriptions fit it best."""

import re
from typing import Any

from fermata.tools.tool import JsonInput, ToolContext
from fermata.tools.tool_search import rank_tools

MAX_STEPS = 12
MAX_TOOLS_PER_STEP = 3
MAX_REQUEST_CHARS = 4000
_STEP_ENDS = re.compile(r"[.;!?\n]+|,? and then |,? then | and |, ")
_MIN_STEP_CHARS = 4


def analyze_task(tool_input: JsonInput, context: ToolContext) -> dict[str, Any]:
    """Return the parts of a request in their order, as steps of a plan.

    Args:
        tool_input: Has `userRequest`.
        context: Says which tools the caller may use.
    """
    from fermata.tools.cms.toolset import CMS_TOOLSET  # the tool is one of them

    request = str(tool_input.arguments.get("userRequest", ""))[:MAX_REQUEST_CHARS]
    parts = [part.strip() for part in _STEP_ENDS.split(request) if len(part.strip()) >= _MIN_STEP_CHARS]
    tools = [
        tool
        for tool in CMS_TOOLSET.list_permitted_tools(context.capabilities, context.scope, tenant=context.tenant)
        if tool.name != "plan_analyzeTask"
    ]
    steps = [
        {"step": number, "action": part, "tools": [tool.name for tool in rank_tools(tools, part)[:MAX_TOOLS_PER_STEP]]}
        for number, part in enumerate(parts[:MAX_STEPS], 1)
    ]
    return {"success": True, "plan": {"objective": request.strip(), "steps": steps, "estimatedSteps": len(steps)}}
