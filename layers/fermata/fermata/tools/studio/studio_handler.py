"""Run a tool of the studio: check phase and permissions when it is called, and answer with a result or an error."""

from collections.abc import Callable
from typing import Any

from fermata.content.validation.validate_document import ContentRefused
from fermata.domain.errors import ApiError
from fermata.domain.tools import ToolOutput
from fermata.tools.studio.branch_writes import has_begun_branch
from fermata.tools.studio.phase_guard import refuse_in_phase
from fermata.tools.studio.project_permissions import CALLER_REFUSALS, refuse_for_caller
from fermata.tools.studio.studio_access import StudioAccess, open_studio
from fermata.tools.tool import JsonInput, ToolContext

StudioHandler = Callable[[dict[str, Any], StudioAccess], Any]
_ADVICE = {
    "mergeConflict": "No tool decides this. Name the fields to the user: a person decides about them in the change "
    "set, or has the branch rejected.",
}
"""What a model is told to do about an error, by its code."""


def answer_in_studio(name: str, handler: StudioHandler) -> Callable[[JsonInput, ToolContext], ToolOutput]:
    """Make the handler of a tool from a function of its arguments and the opened project.

    Args:
        name: The tool.
        handler: Returns the data of the result.
    """

    def handle(tool_input: JsonInput, context: ToolContext) -> ToolOutput:
        access, arguments = open_studio(context), tool_input.arguments
        refusal = refuse_for_caller(name, arguments, access.permissions)
        if refusal is not None:
            return _fail(CALLER_REFUSALS[refusal], code=refusal)
        try:
            phase_refusal = refuse_in_phase(name, access.phase)
            if phase_refusal is not None and not has_begun_branch(access):
                return _fail(phase_refusal.message, suggestion=phase_refusal.suggestion, code=phase_refusal.reason)
            return ToolOutput.success(handler(arguments, access))
        except ContentRefused as error:
            return _fail(error.message, errors=[problem.to_wire() for problem in error.problems])
        except ApiError as error:
            details = error.details or {}
            return _fail(error.message, code=error.code, suggestion=_ADVICE.get(error.code or ""), **details)

    return handle


def _fail(message: str, **members: Any) -> ToolOutput:
    known = {name: value for name, value in members.items() if value is not None}
    return ToolOutput(ok=False, error=message, data={"error": message, **known})
