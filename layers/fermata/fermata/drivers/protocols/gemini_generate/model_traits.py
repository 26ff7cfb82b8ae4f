"""Know what a Gemini model takes, judging by its name (decision 0345)."""

import re

from fermata.drivers.thinking_allowance import DEFAULT_THINKING_TOKENS, effort_from_tokens

_BUDGET_MODEL = re.compile(r"gemini-2\.5(?!.*image)")
_OLD_MODEL = re.compile(r"gemini-(?:1\.|2\.0|pro\b|ultra)|gem(?:ma|ini-.*image)|learnlm")
"""Matches models that do not think, or are not known to."""
_BUDGET_RANGES = (("pro", 128, 32_768), ("lite", 512, 24_576), ("", 1, 24_576))
"""The least and the most tokens of thinking that models of 2.5 take, by a part of their names."""


def is_thinking_model(model: str) -> bool:
    """Return whether a model thinks. A name of tomorrow counts as one that does."""
    return _OLD_MODEL.match(model) is None


def requires_signatures(model: str) -> bool:
    """Return whether a model refuses a call of the current turn without a signature, as those since Gemini 3 do."""
    return is_thinking_model(model) and _BUDGET_MODEL.match(model) is None


def reads_result_images(model: str) -> bool:
    """Return whether images may be part of a result. Earlier models read them beside it."""
    return requires_signatures(model)


def get_gemini_allowance(model: str, tokens: int) -> int:
    """Return the tokens to add to the output limit, which counts thinking too."""
    return (tokens or DEFAULT_THINKING_TOKENS) if is_thinking_model(model) else 0


def build_thinking_config(model: str, tokens: int) -> dict[str, object]:
    """Return `thinkingConfig`; empty for a model that does not think.

    Summaries of thoughts are always asked for: without them, a stream is silent for as long as the model thinks.
    """
    if not is_thinking_model(model):
        return {}
    config: dict[str, object] = {"includeThoughts": True}
    if tokens > 0 and _BUDGET_MODEL.match(model):
        _, least, most = next(limits for limits in _BUDGET_RANGES if limits[0] in model)
        config["thinkingBudget"] = min(max(tokens, least), most)
    elif tokens > 0:
        level = effort_from_tokens(tokens)
        config["thinkingLevel"] = "high" if level == "medium" and "flash" not in model else level
    return config
