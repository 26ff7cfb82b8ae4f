"""Compute how much of a conversation fits into the model's context window, and in which form (decision 0064)."""

import json
from collections.abc import Sequence
from functools import partial

from fermata.aws.resources import Resources
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.prune_rules import prune_before_turn
from fermata.conversations.history.token_estimate import ESTIMATED_BYTES_PER_TOKEN
from fermata.credentials.known_capabilities import get_known_capabilities
from fermata.domain.messages import Message
from fermata.domain.run_settings import DEFAULT_RUN_SETTINGS, RunSettings
from fermata.domain.tools import ToolSpec
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.registry import get_model_traits
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn

WINDOW_RESERVE_RATIO = 0.1
"""Share of the window that stays free because tokens are estimated. Thinking uses it, unless a turn thinks more."""
MIN_HISTORY_TOKENS = 2_000


def build_model_profile(
    resources: Resources,
    turn: Turn,
    toolset: Toolset,
    system_prompt: str,
    tool_specs: Sequence[ToolSpec],
    run_settings: RunSettings = DEFAULT_RUN_SETTINGS,
    *,
    stated_window_tokens: int | None = None,
) -> ModelProfile:
    """Return the limits within which a turn's history is compiled: tokens, images, names of tools.

    Args:
        stated_window_tokens: The context window according to the provider itself, if it is known to be smaller.
    """
    capabilities = get_known_capabilities(resources, turn.provider, turn.model)
    traits = get_model_traits(turn.provider)
    # Ollama's window is what the request asks for, even if the model supports more (decision 0072).
    window_tokens = (
        resources.settings.ollama_window_tokens
        if traits.window_is_requested
        else capabilities.context_window or resources.settings.default_window_tokens
    )
    window_tokens = min(window_tokens, stated_window_tokens or window_tokens)
    reserved_tokens = max(int(window_tokens * WINDOW_RESERVE_RATIO), turn.thinking_tokens)
    reserved_tokens += run_settings.max_output_tokens or resources.settings.max_answer_tokens
    fixed_chars = len(system_prompt) + len(turn.situation) + sum(map(_count_tool_chars, tool_specs))
    unfixed_tokens = window_tokens - fixed_chars // ESTIMATED_BYTES_PER_TOKEN
    reads_images = capabilities.vision_input is not False
    return ModelProfile(
        provider=turn.provider,
        model=turn.model,
        max_history_tokens=max(MIN_HISTORY_TOKENS, unfixed_tokens - reserved_tokens),
        max_sent_tokens=max(MIN_HISTORY_TOKENS, unfixed_tokens) if traits.window_is_requested else None,
        reads_images=reads_images,
        reads_result_images=reads_images and traits.get_capabilities(turn.model).tool_result_images,
        max_images=traits.max_images,
        is_heavy_tool=partial(_is_heavy_tool, toolset),
        is_forgotten_tool=partial(_is_forgotten_tool, toolset),
        prune=partial(prune_before_turn, run_settings.prune, turn.id) if run_settings.prune else _keep_all,
        display_name=toolset.get_tool_namer(ToolNaming(turn.tool_names)),
    )


def _keep_all(messages: Sequence[Message]) -> Sequence[Message]:
    return messages


def _is_heavy_tool(toolset: Toolset, name: str) -> bool:
    tool = toolset.find_tool(name)
    return tool is not None and tool.result_policy.heavy


def _is_forgotten_tool(toolset: Toolset, name: str) -> bool:
    tool = toolset.find_tool(name)
    return tool is not None and not tool.result_policy.persist


def _count_chars(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema))


_count_tool_chars: WeakCache[int] = WeakCache(_count_chars)
"""Writes a schema out once, because a tool has the same specification in each invocation (decision 0606)."""
