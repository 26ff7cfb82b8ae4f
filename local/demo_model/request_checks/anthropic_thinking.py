"""Check the thinking of requests as the Messages API of Anthropic does."""

import re
from collections.abc import Mapping
from typing import Any

from local.demo_model.merged_messages import ContentBlock, MergedMessage, fingerprint, sign_thinking
from local.demo_model.request_checks.errors import require

THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"
THINKING_KINDS = ("thinking", "redacted_thinking")


def check_thinking_setting(headers: Mapping[str, str], body: dict[str, Any], messages: list[MergedMessage]) -> None:
    """Raise RequestRejected for a setting that the model does not take, or that does not fit the last messages."""
    setting = body.get("thinking") or {}
    version = read_model_version(body["model"])
    kind = setting.get("type")
    if "block_binding" in setting:
        require(
            THINKING_BINDING_BETA in headers.get("anthropic-beta", ""),
            "thinking.block_binding: Extra inputs are not permitted",
        )
    if kind == "adaptive" and version:
        require(version >= (4, 6), "adaptive thinking is not supported on this model")
    if kind != "enabled":
        return
    other = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
    require(not version or version < (4, 7), f'"thinking.type.enabled" is not supported for this model. {other}')
    budget = setting.get("budget_tokens", 0)
    require(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    require(budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if len(messages) > 1 and messages[-1].blocks[0]["type"] == "tool_result":
        kind = messages[-2].blocks[0]["type"]
        require(
            kind in THINKING_KINDS,
            f"Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block.",
        )


def check_thinking_blocks(body: dict[str, Any], messages: list[MergedMessage]) -> None:
    """Raise RequestRejected for thinking that is not where it may be, or that is not this server's own."""
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    is_bound = (read_model_version(body["model"]) or (0, 0)) >= (5, 1) and binding.get(
        "prefix_mismatch_behavior"
    ) != "drop_block"
    for index, message in enumerate(messages):
        kinds = [block["type"] for block in message.blocks]
        if any(kind in THINKING_KINDS for kind in kinds):
            require(
                kinds[0] in THINKING_KINDS,
                f"messages.{index}: the first block must be `thinking` or `redacted_thinking`.",
            )
        for number, block in enumerate(message.blocks):
            if block["type"] == "thinking":
                _check_signature(f"messages.{index}.content.{number}", body, messages[:index], block, is_bound)


def _check_signature(
    where: str, body: dict[str, Any], preceding_messages: list[MergedMessage], block: ContentBlock, is_bound: bool
) -> None:
    """Check a signature that this server has made. Other signatures are accepted."""
    signature = block.get("signature")
    require(isinstance(signature, str), f"{where}.thinking.signature: Field required")
    require(isinstance(block.get("thinking"), str), f"{where}.thinking.thinking: Field required")
    maker, _, rest = str(signature).partition(".")
    if maker != "demo":
        require(bool(signature), f"{where}: Invalid `signature` in `thinking` block")
        return
    own_fingerprint, _, _ = rest.partition(".")
    require(
        own_fingerprint == fingerprint(body["model"], block["thinking"]),
        f"{where}: Invalid `signature` in `thinking` block",
    )
    if is_bound:
        require(
            signature == sign_thinking(body, preceding_messages, block["thinking"]),
            f"{where}: The block is bound to a different conversation",
        )


def read_model_version(model: str) -> tuple[int, int] | None:
    """Return the version in the name of a model, or None if it has none."""
    match = re.match(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model)
    return (int(match[1]), int(match[2] or 0)) if match else None
