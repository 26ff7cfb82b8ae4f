"""Call the tools that a prompt names, such as `Call pim.getProduct with {"sku": "SKU-123"}`, one call a line."""

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from local.demo_model.model_answer import ModelAnswer, ToolCall

if TYPE_CHECKING:
    from local.demo_model.rules.next_answer import ToolResult

MAX_SHOWN_TOOLS = 60
_CALL = re.compile(r"^\s*call\s+`?([\w.-]{1,120})`?(?:\s+with\s+(\{.{0,4000}\}))?\s*$", re.IGNORECASE | re.MULTILINE)


class NamedCall(NamedTuple):
    """A call that a prompt asks for."""

    tool: str
    input: dict[str, Any]


def parse_named_calls(prompt: str) -> list[NamedCall]:
    """Return the calls of a prompt. Arguments that are no JSON object make it none that asks for a call."""
    calls = []
    for name, arguments in _CALL.findall(prompt):
        try:
            value = json.loads(arguments or "{}")
        except ValueError:
            return []
        calls.append(NamedCall(name, value))
    return calls


def answer_named_calls(
    prompt: str, offered: list[str], results: "tuple[ToolResult, ...]", label: str
) -> ModelAnswer | None:
    """Call what the prompt names, and then say what came of it; None for any other prompt.

    Args:
        prompt: Of the user.
        offered: The names of the tools of the request.
        results: Of this turn.
        label: What the model is called.
    """
    calls = parse_named_calls(prompt)
    if not calls:
        return None
    if results:
        outcomes = [f"{one.tool}: {one.error or json.dumps(one.data, ensure_ascii=False)}" for one in results]
        return ModelAnswer(text=f"{label}. " + "\n".join(outcomes))
    names = {re.sub(r"[^A-Za-z0-9]", "_", name).lower(): name for name in offered}
    known = [names.get(re.sub(r"[^A-Za-z0-9]", "_", call.tool).lower()) for call in calls]
    if missing := [call.tool for call, name in zip(calls, known, strict=True) if name is None]:
        listed = ", ".join(sorted(offered)[:MAX_SHOWN_TOOLS]) or "none"
        return ModelAnswer(text=f"{label}. I was not given {', '.join(missing)}. My tools are: {listed}.")
    tool_calls = tuple(ToolCall(name, call.input) for call, name in zip(calls, known, strict=True) if name)
    return ModelAnswer(text=f"{label}. I call what you have named.", tool_calls=tool_calls)
