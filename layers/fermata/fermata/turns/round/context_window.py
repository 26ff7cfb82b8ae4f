"""How much of its conversation a turn's model is sent, and what of it."""

import json
from collections.abc import Sequence

from fermata.aws.resources import Resources
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import ESTIMATED_BYTES_PER_TOKEN
from fermata.credentials.known_capabilities import get_known_capabilities
from fermata.domain.tools import ToolSpec
from fermata.drivers.registry import get_model_traits
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn

WINDOW_RESERVE_RATIO = 0.1
"""Of the window, left free because tokens are estimated. In it a model thinks, unless it is told to think more."""
MIN_HISTORY_TOKENS = 2_000


def build_model_profile(
    resources: Resources, turn: Turn, toolset: Toolset, system_prompt: str, tool_specs: Sequence[ToolSpec]
) -> ModelProfile:
    known = get_known_capabilities(resources, turn.provider, turn.model)
    traits = get_model_traits(turn.provider)
    # Some servers hold as much as the request asks them to, whatever the model could (decision 0072).
    window = (
        resources.settings.ollama_window_tokens
        if traits.window_is_requested
        else known.context_window or resources.settings.default_window_tokens
    )
    around = len(system_prompt) + len(turn.situation) + sum(map(_size, tool_specs))
    free = max(int(window * WINDOW_RESERVE_RATIO), turn.thinking_tokens) + resources.settings.max_answer_tokens

    def is_heavy(name: str) -> bool:
        tool = toolset.find_tool(name)
        return tool is not None and tool.result_policy.heavy

    def is_forgotten(name: str) -> bool:
        tool = toolset.find_tool(name)
        return tool is not None and not tool.result_policy.persist

    return ModelProfile(
        provider=turn.provider,
        model=turn.model,
        max_history_tokens=max(MIN_HISTORY_TOKENS, window - free - around // ESTIMATED_BYTES_PER_TOKEN),
        reads_images=known.vision_input is not False,
        reads_result_images=known.vision_input is not False and traits.get_capabilities(turn.model).tool_result_images,
        max_images=traits.max_images,
        is_heavy_tool=is_heavy,
        is_forgotten_tool=is_forgotten,
        display_name=toolset.get_tool_namer(ToolNaming(turn.tool_names)),
    )


def _size(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema))
