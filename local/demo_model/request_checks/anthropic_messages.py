"""Refuses what the real Messages API refuses, in much the same words."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from local.demo_model.merged_messages import ContentBlock, MergedMessage, fingerprint, merge_messages, sign_thinking

MAX_CACHE_BREAKPOINTS = 4
THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"

_MEMBERS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "metadata", "thinking", "cache_control", "output_config", "service_tier", "container",
}  # fmt: skip
_BLOCK_MEMBERS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "tool_use": {"id", "name", "input", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_ROLES = {"text": None, "image": "user", "tool_result": "user"}
_THINKING = ("thinking", "redacted_thinking")
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


class RequestRejected(Exception):
    """The API's error body: `type` and `message` under an HTTP status."""

    def __init__(self, message: str, *, kind: str = "invalid_request_error", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.status = status

    def to_body(self) -> dict[str, Any]:
        return {"type": "error", "error": {"type": self.kind, "message": self.message}}


def check_request(headers: Mapping[str, str], body: Any) -> None:
    """Raise `Refused` for the first thing that is wrong."""
    if not headers.get("x-api-key"):
        raise RequestRejected("x-api-key header is required", kind="authentication_error", status=401)
    if not headers.get("anthropic-version"):
        raise RequestRejected("anthropic-version: header is required")
    if not isinstance(body, dict):
        raise RequestRejected("The request body is not valid JSON.")
    _check_frame(body)
    _check_tools(body)
    _check_messages(body["messages"])
    turns = merge_messages(body["messages"])
    _check_order(turns)
    _check_pairs(turns)
    _check_marks(body, turns)
    _check_thinking_setting(headers, body, turns)
    _check_thinking_blocks(body, turns)


def _want(condition: bool, message: str) -> None:
    if not condition:
        raise RequestRejected(message)


def _check_frame(body: dict[str, Any]) -> None:
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        _want(name in body, f"{name}: Field required")
    _want(isinstance(body["model"], str) and bool(body["model"]), "model: String should have at least 1 character")
    tokens = body["max_tokens"]
    _want(isinstance(tokens, int) and tokens > 0, "max_tokens: Input should be greater than or equal to 1")
    most = _most_tokens(body["model"])
    allowed = f"which is the maximum allowed number of output tokens for {body['model']}"
    _want(tokens <= most, f"max_tokens: {tokens} > {most}, {allowed}")
    _want(isinstance(body["messages"], list) and bool(body["messages"]), "messages: at least one message is required")
    system = body.get("system") or []
    for index, block in enumerate([] if isinstance(system, str) else system):
        _want(block.get("type") == "text", f"system.{index}.type: Input should be 'text'")
        _want(bool(block.get("text", "").strip()), "system: text content blocks must be non-empty")


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    for index, tool in enumerate(tools):
        _want(bool(_NAME.fullmatch(tool.get("name", ""))), f"tools.{index}.custom.name: String should match pattern")
        schema = tool.get("input_schema")
        _want(isinstance(schema, dict), f"tools.{index}.custom.input_schema: Field required")
        _want(schema.get("type") == "object", f"tools.{index}.custom.input_schema.type: Input should be 'object'")
        for word in ("oneOf", "anyOf", "allOf"):
            problem = f"tools.{index}.custom.input_schema: input_schema does not support {word} at the top level"
            _want(word not in schema, problem)
    _want(len({tool["name"] for tool in tools}) == len(tools), "tools: Tool names must be unique.")
    if not tools and "tool_choice" in body:
        raise RequestRejected("tool_choice may only be specified while providing tools")


def _check_messages(messages: list[Any]) -> None:
    ids: Counter[str] = Counter()
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        _want(isinstance(message, dict), f"{where}: Input should be a valid dictionary")
        _want(message.get("role") in ("user", "assistant"), f'messages: Unexpected role "{message.get("role")}"')
        _want(set(message) == {"role", "content"}, f"{where}: Extra inputs are not permitted")
        content = message["content"]
        _want(bool(content), f"{where}: all messages must have non-empty content")
        if isinstance(content, str):
            _want(bool(content.strip()), "messages: text content blocks must contain non-whitespace text")
            continue
        for number, block in enumerate(content):
            _check_block(f"{where}.content.{number}", message["role"], block)
            ids.update([block["id"]] if block["type"] == "tool_use" else [])
    _want(not ids or max(ids.values()) == 1, "messages: `tool_use` ids must be unique")


def _check_block(where: str, role: str, block: ContentBlock) -> None:
    _want(isinstance(block, dict), f"{where}: Input should be a valid dictionary")
    kind = block.get("type", "")
    _want(
        kind in _BLOCK_MEMBERS,
        f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
    )
    _want(_ROLES.get(kind, "assistant") in (None, role), f"{where}: `{kind}` blocks are not allowed in {role} messages")
    allowed = _BLOCK_MEMBERS[kind] | ({"cache_control"} if kind not in _THINKING else set()) | {"type"}
    for name in sorted(block.keys() - allowed):
        raise RequestRejected(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    match kind:
        case "text":
            _want(bool(block.get("text")), "messages: text content blocks must be non-empty")
            _want(bool(block["text"].strip()), "messages: text content blocks must contain non-whitespace text")
        case "image":
            _check_image(where, block)
        case "tool_use":
            _want(bool(_NAME.fullmatch(block.get("id", ""))), f"{where}.tool_use.id: String should match pattern")
            _want(bool(_NAME.fullmatch(block.get("name", ""))), f"{where}.tool_use.name: String should match pattern")
            _want(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            _check_result(where, block)


def _check_image(where: str, block: ContentBlock) -> None:
    source = block.get("source") or {}
    _want(source.get("media_type") in _IMAGES, f"{where}.image.source.base64.media_type: Input should be 'image/jpeg'…")
    try:
        base64.b64decode(source.get("data", ""), validate=True)
    except binascii.Error:
        raise RequestRejected(f"{where}.image.source.base64: invalid base64 data") from None


def _check_result(where: str, block: ContentBlock) -> None:
    content = block.get("content", "")
    for part in [] if isinstance(content, str) else content:
        _want(part.get("type") in ("text", "image"), f"{where}.content: unexpected block")
        only_text = not block.get("is_error") or part["type"] == "text"
        _want(only_text, f"{where}: all content must be type `text` if `is_error` is true")
        _check_block(where, "user", part)


def _check_order(turns: list[MergedMessage]) -> None:
    _want(turns[0].role == "user", "messages: first message must use the `user` role")
    if turns[-1].role == "assistant":
        raise RequestRejected(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _check_pairs(turns: list[MergedMessage]) -> None:
    for index, turn in enumerate(turns):
        before = turns[index - 1].blocks if index else []
        asked = [block["id"] for block in before if block["type"] == "tool_use"]
        results = [block for block in turn.blocks if block["type"] == "tool_result"]
        for result in results:
            _want(
                result["tool_use_id"] in asked,
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {result['tool_use_id']}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        first = [block["tool_use_id"] for block in turn.blocks[: len(asked)] if block["type"] == "tool_result"]
        missing = [call for call in asked if call not in first]
        _want(
            not missing,
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
        )
        _want(len(results) == len(asked), "messages: each `tool_use` must have a single result.")


def _check_marks(body: dict[str, Any], turns: list[MergedMessage]) -> None:
    system = body.get("system") or []
    places = [*(body.get("tools") or []), *([] if isinstance(system, str) else system)]
    places += [block for turn in turns for block in turn.blocks] + [body]
    found = sum("cache_control" in place for place in places)
    _want(
        found <= MAX_CACHE_BREAKPOINTS,
        f"A maximum of {MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found {found}.",
    )


def _check_thinking_setting(headers: Mapping[str, str], body: dict[str, Any], turns: list[MergedMessage]) -> None:
    setting = body.get("thinking") or {}
    version = _version(body["model"])
    kind = setting.get("type")
    if "block_binding" in setting:
        _want(
            THINKING_BINDING_BETA in headers.get("anthropic-beta", ""),
            "thinking.block_binding: Extra inputs are not permitted",
        )
    if kind == "adaptive" and version:
        _want(version >= (4, 6), "adaptive thinking is not supported on this model")
    if kind != "enabled":
        return
    other = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
    _want(not version or version < (4, 7), f'"thinking.type.enabled" is not supported for this model. {other}')
    budget = setting.get("budget_tokens", 0)
    _want(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    _want(budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if len(turns) > 1 and turns[-1].blocks[0]["type"] == "tool_result":
        found = turns[-2].blocks[0]["type"]
        _want(
            found in _THINKING,
            f"Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block.",
        )


def _check_thinking_blocks(body: dict[str, Any], turns: list[MergedMessage]) -> None:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    bound = (_version(body["model"]) or (0, 0)) >= (5, 1) and binding.get("prefix_mismatch_behavior") != "drop_block"
    for index, turn in enumerate(turns):
        kinds = [block["type"] for block in turn.blocks]
        if any(kind in _THINKING for kind in kinds):
            _want(
                kinds[0] in _THINKING, f"messages.{index}: the first block must be `thinking` or `redacted_thinking`."
            )
        for number, block in enumerate(turn.blocks):
            if block["type"] == "thinking":
                _check_signature(f"messages.{index}.content.{number}", body, turns[:index], block, bound)


def _check_signature(
    where: str, body: dict[str, Any], before: list[MergedMessage], block: ContentBlock, bound: bool
) -> None:
    """Only what this server signed can be checked; other signatures are taken as they are."""
    signature = block.get("signature")
    _want(isinstance(signature, str), f"{where}.thinking.signature: Field required")
    _want(isinstance(block.get("thinking"), str), f"{where}.thinking.thinking: Field required")
    maker, _, rest = str(signature).partition(".")
    if maker != "demo":
        _want(bool(signature), f"{where}: Invalid `signature` in `thinking` block")
        return
    own, _, _ = rest.partition(".")
    _want(own == fingerprint(body["model"], block["thinking"]), f"{where}: Invalid `signature` in `thinking` block")
    if bound:
        _want(
            signature == sign_thinking(body, before, block["thinking"]),
            f"{where}: The block is bound to a different conversation",
        )


def _most_tokens(model: str) -> int:
    """What the shortest answers are that models of this age are limited to."""
    version = _version(model) or (9, 0)
    steps = (((3, 5), 4096), ((3, 7), 8192), ((4, 5), 32_000), ((4, 6), 64_000))
    return next((most for before, most in steps if version < before), 128_000)


def _version(model: str) -> tuple[int, int] | None:
    found = re.match(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model)
    return (int(found[1]), int(found[2] or 0)) if found else None
