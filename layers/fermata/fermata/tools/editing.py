"""What an editor's answer says of its document besides the result, and the way back that it gives (docs/editing.md)."""

import json
from dataclasses import dataclass
from typing import Any

from fermata.tools.catalogue import toolset_for
from fermata.tools.coerce import InvalidInput
from fermata.tools.pipeline import parse_answer, read_input
from fermata.tools.tool import Access, Execution, Tool, ToolInput
from fermata.tools.trim import shortened_text
from fermata.words.base import Word
from fermata.words.blocks import ToolCallBlock
from fermata.words.tools import ToolOutput

MOST_REVISION = 200
MOST_CHANGES = 4_000
MOST_STEPS = 20
MOST_INVERSE = 1_000_000
"""Characters of JSON an inverse may have."""
MEMBERS = frozenset({"conflict", "revision", "changes", "inverse"})
"""What an answer may carry besides the members of a ToolOutput."""


class Restore(ToolInput):
    patch: dict[str, Any]


RESTORE = Tool(
    name="restore",
    toolset="editing",
    description="Puts back what an edit changed, from what the editor itself had kept of it.",
    execution=Execution.BROWSER,
    capability=Access.WRITE,
    input=Restore,
)
"""Belongs to no scope's toolset: it is asked for by an undo only, never by a model."""


class Step(Word):
    """One call of an inverse: a tool's canonical name and its validated input."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Told:
    """`inverse` is what was sent, or None."""

    output: ToolOutput
    revision: str = ""
    changes: str = ""
    inverse: Any = None


def read_answer(value: Any) -> Told:
    """An answer that is no ToolOutput is data, whatever its members are called."""
    if not isinstance(value, dict) or type(value.get("ok")) is not bool:
        return Told(parse_answer(value))
    output = parse_answer({name: member for name, member in value.items() if name not in MEMBERS})
    is_conflict = not output.ok and value.get("conflict") is True
    revision, changes = value.get("revision"), value.get("changes")
    return Told(
        output.model_copy(update={"conflict": True}) if is_conflict else output,
        revision if isinstance(revision, str) else "",
        changes if isinstance(changes, str) else "",
        value.get("inverse"),
    )


def conflict(told: Told, planned: str) -> ToolOutput:
    """What the model reads of a call that came too late: a line for each of our sentences and of the editor's texts."""
    said = ["Conflict: nothing was done.", f"The editor says: {told.output.error}", _revisions(planned, told.revision)]
    if told.changes.strip():
        said.append(f"What has changed, as the editor says: {shortened_text(told.changes.strip(), MOST_CHANGES)}")
    said.append("Read the document again before you repeat the call.")
    return told.output.model_copy(update={"error": "\n".join(said)})


def _revisions(planned: str, now: str) -> str:
    if planned and now:
        return f"The call was planned on revision {planned} of the document, which is now at {now}."
    return f"The document is now at revision {now}." if now else "The document has changed since you read it."


def find(scope: str, name: str) -> Tool | None:
    return RESTORE if name == RESTORE.name else toolset_for(scope).find(name)


def read_inverse(scope: str, tenant: str, value: Any) -> tuple[Step, ...]:
    """Raises InvalidInput with a sentence for whoever builds the editor."""
    calls = value if isinstance(value, list) else [value]
    if len(calls) > MOST_STEPS:
        raise InvalidInput(f"An inverse may have {MOST_STEPS} calls at most; this one has {len(calls)}.")
    if (size := len(json.dumps(value))) > MOST_INVERSE:
        raise InvalidInput(f"An inverse may have {MOST_INVERSE:,} characters at most; this one has {size:,}.")
    return tuple(_step(scope, tenant, call) for call in calls)


def _step(scope: str, tenant: str, call: Any) -> Step:
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        raise InvalidInput("Each call of an inverse is an object with 'tool' and 'input'.")
    tool = find(scope, call["tool"])
    if tool is None or not tool.exists_for(scope, tenant):
        raise InvalidInput(f"Unknown tool: {call['tool']}.")
    if tool.capability is not Access.WRITE or tool.execution is not Execution.BROWSER:
        raise InvalidInput(f"{tool.name} changes nothing in the editor, so it takes nothing back.")
    arguments, _ = read_input(tool, ToolCallBlock(tool_call_id="", tool_name=tool.name, input=call.get("input")))
    return Step(tool=tool.name, input=arguments)


def may_ask(scope: str, tenant: str, name: str, capabilities: frozenset[str]) -> bool:
    """Whether a tool may be asked for in this scope by somebody with these capabilities."""
    tool = find(scope, name)
    return tool is not None and tool.exists_for(scope, tenant) and tool.permits(capabilities)
