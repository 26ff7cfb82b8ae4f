"""Turn a call into the prompt of a sub-agent, and the end of its turn into the output of the call."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fermata.domain.blocks import Block, TextBlock
from fermata.domain.events import CancelledEvent, ErrorEvent, TerminalEvent
from fermata.domain.json_shortening import shorten_text
from fermata.domain.tools import ToolOutput, build_sub_agent_data

MAX_ANSWER_CHARS = 100_000
_STUCK_REASONS: Mapping[str, str] = {
    "roundLimit": "it reached its limit of steps",
    "repeatedCall": "it made the same call again and again",
    "repeatedFailures": "its calls failed again and again",
    "turnCost": "a person did not let it go on because of its cost",
}


def build_task_prompt(arguments: Any) -> str:
    """Return what a sub-agent is asked: the member `task`, or else the whole input as JSON.

    Args:
        arguments: The input of the call.
    """
    task = arguments.get("task") if isinstance(arguments, dict) else None
    return task if isinstance(task, str) and task else json.dumps(arguments, ensure_ascii=False)


def build_sub_agent_output(
    agent_id: str, terminal: TerminalEvent, content: Iterable[Block], forced_answer_reason: str = ""
) -> ToolOutput:
    """Return the output of the call that a sub-agent's turn answers.

    Args:
        agent_id: The id of the sub-agent.
        terminal: How its turn ends.
        content: Its last message.
        forced_answer_reason: Why it had to stop without being ready; empty if it had not.
    """
    text = "\n\n".join(block.text for block in content if isinstance(block, TextBlock))
    text = shorten_text(text, MAX_ANSWER_CHARS)
    if isinstance(terminal, ErrorEvent):
        return ToolOutput.failure(f"The agent {agent_id} failed: {terminal.message}")
    if isinstance(terminal, CancelledEvent):
        return ToolOutput.failure(f"The agent {agent_id} was stopped before it was ready.")
    if reason := _STUCK_REASONS.get(forced_answer_reason):
        said = f" It said: {text}" if text else ""
        return ToolOutput.failure(f"The agent {agent_id} was not ready when it was stopped, because {reason}.{said}")
    if not text.strip():
        return ToolOutput.failure(f"The agent {agent_id} ended its work without a word.")
    return ToolOutput.success(build_sub_agent_data(agent_id, text))
