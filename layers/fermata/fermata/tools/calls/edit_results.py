"""Read what an editor reports with a result: conflict, revision, changes and inverse (docs/revisions-and-undo.md)."""

import json
from typing import Any

from fermata.domain.base import DomainModel
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.json_shortening import shorten_text
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.pipeline import parse_tool_input, parse_tool_output
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.tools.tool import Access, Execution, Tool, ToolInput
from fermata.tools.toolset import Toolset

MAX_EDIT_CHANGES_CHARS = 4_000
MAX_INVERSE_STEPS = 20
MAX_INVERSE_CHARS = 1_000_000
"""Limit on the JSON text of an inverse."""
EDIT_RESULT_MEMBERS = frozenset({"conflict", "revision", "changes", "inverse"})
"""The members that a posted result may have besides those of a ToolOutput."""


class RestoreInput(ToolInput):
    """A patch that the editor itself made; it is returned to the editor unchanged."""

    patch: dict[str, Any]


# No toolset contains it: only an undo calls it, never a model (decision 0118).
RESTORE_TOOL = Tool(
    name="restore",
    toolset="editing",
    description="Puts back what an edit changed, from what the editor itself had kept of it.",
    execution=Execution.BROWSER,
    access=Access.WRITE,
    input_model=RestoreInput,
)


class InverseStep(DomainModel):
    """One call of an inverse: the canonical name of a tool and its validated input."""

    tool: str
    input: dict[str, Any]


@value_dataclass(frozen=True)
class EditResult:
    """A posted result with what it says about the document. `inverse` is the raw value, or None."""

    output: ToolOutput
    revision: str = ""
    changes: str = ""
    inverse: Any = None


def parse_edit_result(value: Any) -> EditResult:
    """Split a posted result into its ToolOutput and what it says about the document.

    A value that is no ToolOutput is the data of a success, even if it has members of one.
    """
    if not isinstance(value, dict) or type(value.get("ok")) is not bool:
        return EditResult(parse_tool_output(value))
    output = parse_tool_output({name: member for name, member in value.items() if name not in EDIT_RESULT_MEMBERS})
    is_conflict = not output.ok and value.get("conflict") is True
    return EditResult(
        output.model_copy(update={"conflict": True}) if is_conflict else output,
        _text_or_empty(value.get("revision")),
        _text_or_empty(value.get("changes")),
        value.get("inverse"),
    )


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def build_conflict_output(result: EditResult, planned_on_revision: str) -> ToolOutput:
    """Build what the model reads about a call that the document's changes have overtaken (decision 0115).

    Args:
        result: The editor's result, which reports a conflict.
        planned_on_revision: The revision on which the call was planned, or an empty text.
    """
    lines = [
        "Conflict: nothing was done.",
        f"The editor says: {result.output.error}",
        _describe_revisions(planned_on_revision, result.revision),
    ]
    if changes := result.changes.strip():
        lines.append(f"What has changed, as the editor says: {shorten_text(changes, MAX_EDIT_CHANGES_CHARS)}")
    lines.append("Read the document again before you repeat the call.")
    return result.output.model_copy(update={"error": "\n".join(lines)})


def _describe_revisions(planned: str, current: str) -> str:
    if planned and current:
        return f"The call was planned on revision {planned} of the document, which is now at {current}."
    return f"The document is now at revision {current}." if current else "The document has changed since you read it."


def find_edit_tool(toolset: Toolset, name: str) -> Tool | None:
    """Find a tool by any of its names, or the tool `restore`, which belongs to no toolset."""
    return RESTORE_TOOL if name == RESTORE_TOOL.name else toolset.find_tool(name)


def parse_inverse(toolset: Toolset, scope: str, tenant: str, value: Any) -> tuple[InverseStep, ...]:
    """Validate the inverse of an edit: one call of a writing browser tool, or a list of them.

    Args:
        toolset: The tools that may be called.
        scope: The scope of the turn.
        tenant: The tenant, which may have registered tools of its own.
        value: The member `inverse` of the result that the editor posted.

    Raises:
        InvalidToolInput: The inverse cannot be used. The message is for the developer of the editor.
    """
    calls = value if isinstance(value, list) else [value]
    if len(calls) > MAX_INVERSE_STEPS:
        raise InvalidToolInput(f"An inverse may have {MAX_INVERSE_STEPS} calls at most; this one has {len(calls)}.")
    if (size := len(json.dumps(value))) > MAX_INVERSE_CHARS:
        raise InvalidToolInput(f"An inverse may have {MAX_INVERSE_CHARS:,} characters at most; this one has {size:,}.")
    return tuple(_parse_inverse_step(toolset, scope, tenant, call) for call in calls)


def _parse_inverse_step(toolset: Toolset, scope: str, tenant: str, call: Any) -> InverseStep:
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        raise InvalidToolInput("Each call of an inverse is an object with 'tool' and 'input'.")
    tool = find_edit_tool(toolset, call["tool"])
    if tool is None or not tool.is_available_in(scope, tenant):
        raise InvalidToolInput(f"Unknown tool: {call['tool']}.")
    if tool.access is not Access.WRITE or tool.execution is not Execution.BROWSER:
        raise InvalidToolInput(f"{tool.name} changes nothing in the editor, so it takes nothing back.")
    arguments, _ = parse_tool_input(tool, ToolCallBlock(tool_call_id="", tool_name=tool.name, input=call.get("input")))
    return InverseStep(tool=tool.name, input=arguments)


def is_tool_permitted(toolset: Toolset, scope: str, tenant: str, name: str, capabilities: frozenset[str]) -> bool:
    """Return whether a caller may have a browser tool called in this scope.

    Args:
        toolset: The tools of the turn's agent.
        scope: The scope of the turn.
        tenant: The caller's tenant.
        name: The tool's canonical name, prefixed name or alias.
        capabilities: Those of the caller.
    """
    tool = find_edit_tool(toolset, name)
    return tool is not None and tool.is_available_in(scope, tenant) and tool.permits(capabilities)
