"""The part of the example's prompt that changes from turn to turn."""

from typing import Any

from fermata.agents.shorten_prompt_lines import to_single_line
from fermata.tools.tool_names import ToolNaming


def situation(snapshot: Any, _naming: ToolNaming) -> str:
    recipes = snapshot.get("recipes", {}) if isinstance(snapshot, dict) else {}
    return f"Recipes: {', '.join(map(to_single_line, recipes)) or '(none)'}"
