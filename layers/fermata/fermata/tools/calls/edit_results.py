"""What an editor's answer says of its document besides the result, and the way back that it gives (docs/editing.md)."""

import json
from dataclasses import dataclass
from typing import Any

from fermata.domain.base import DomainModel
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import parse_tool_input, parse_tool_output
from fermata.tools.calls.trimming import shorten_text
from fermata.tools.registry import get_toolset
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.tools.tool import Access, Execution, Tool, ToolInput

MAX_EDIT_REVISION_CHARS = 200
MAX_EDIT_CHANGES_CHARS = 4_000
MAX_INVERSE_STEPS = 20
MAX_INVERSE_CHARS = 1_000_000
"""Characters of JSON an inverse may have."""
EDIT_RESULT_MEMBERS = frozenset({"conflict", "revision", "changes", "inverse"})
"""What an answer may carry besides the members of a ToolOutput."""


class RestoreInput(ToolInput):
    patch: dict[str, Any]


RESTORE_TOOL = Tool(
    name="restore",
    toolset="editing",
    description="Puts back what an edit changed, from what the editor itself had kept of it.",
    execution=Execution.BROWSER,
    capability=Access.WRITE,
    input=RestoreInput,
)
"""Belongs to no scope's toolset: it is asked for by an undo only, never by a model."""


class InverseStep(DomainModel):
    """One call of an inverse: a tool's canonical name and its validated input."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class EditResult:
    """`inverse` is what was sent, or None."""

    output: ToolOutput
    revision: str = ""
    changes: str = ""
    inverse: Any = None


def parse_edit_result(value: Any) -> EditResult:
    """An answer that is no ToolOutput is data, whatever its members are called."""
    if not isinstance(value, dict) or type(value.get("ok")) is not bool:
        return EditResult(parse_tool_output(value))
    output = parse_tool_output({name: member for name, member in value.items() if name not in EDIT_RESULT_MEMBERS})
    is_conflict = not output.ok and value.get("conflict") is True
    revision, changes = value.get("revision"), value.get("changes")
    return EditResult(
        output.model_copy(update={"conflict": True}) if is_conflict else output,
        revision if isinstance(revision, str) else "",
        changes if isinstance(changes, str) else "",
        value.get("inverse"),
    )


def build_conflict_output(result: EditResult, planned_revision: str) -> ToolOutput:
    """What the model reads of a call that came too late: a line for each of our sentences and of the editor's texts."""
    said = [
        "Conflict: nothing was done.",
        f"The editor says: {result.output.error}",
        _revisions(planned_revision, result.revision),
    ]
    if result.changes.strip():
        said.append(
            f"What has changed, as the editor says: {shorten_text(result.changes.strip(), MAX_EDIT_CHANGES_CHARS)}"
        )
    said.append("Read the document again before you repeat the call.")
    return result.output.model_copy(update={"error": "\n".join(said)})


def _revisions(planned: str, now: str) -> str:
    if planned and now:
        return f"The call was planned on revision {planned} of the document, which is now at {now}."
    return f"The document is now at revision {now}." if now else "The document has changed since you read it."


def find_edit_tool(scope: str, name: str) -> Tool | None:
    return RESTORE_TOOL if name == RESTORE_TOOL.name else get_toolset(scope).find_tool(name)


def parse_inverse(scope: str, tenant: str, value: Any) -> tuple[InverseStep, ...]:
    """Raises InvalidInput with a sentence for whoever builds the editor."""
    calls = value if isinstance(value, list) else [value]
    if len(calls) > MAX_INVERSE_STEPS:
        raise InvalidToolInput(f"An inverse may have {MAX_INVERSE_STEPS} calls at most; this one has {len(calls)}.")
    if (size := len(json.dumps(value))) > MAX_INVERSE_CHARS:
        raise InvalidToolInput(f"An inverse may have {MAX_INVERSE_CHARS:,} characters at most; this one has {size:,}.")
    return tuple(_step(scope, tenant, call) for call in calls)


def _step(scope: str, tenant: str, call: Any) -> InverseStep:
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        raise InvalidToolInput("Each call of an inverse is an object with 'tool' and 'input'.")
    tool = find_edit_tool(scope, call["tool"])
    if tool is None or not tool.is_available_in(scope, tenant):
        raise InvalidToolInput(f"Unknown tool: {call['tool']}.")
    if tool.capability is not Access.WRITE or tool.execution is not Execution.BROWSER:
        raise InvalidToolInput(f"{tool.name} changes nothing in the editor, so it takes nothing back.")
    arguments, _ = parse_tool_input(tool, ToolCallBlock(tool_call_id="", tool_name=tool.name, input=call.get("input")))
    return InverseStep(tool=tool.name, input=arguments)


def is_tool_permitted(scope: str, tenant: str, name: str, capabilities: frozenset[str]) -> bool:
    """Whether a tool may be asked for in this scope by somebody with these capabilities."""
    tool = find_edit_tool(scope, name)
    return tool is not None and tool.is_available_in(scope, tenant) and tool.permits(capabilities)
