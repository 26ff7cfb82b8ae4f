"""Check requests as the Messages API of Anthropic does."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.merged_messages import ContentBlock, MergedMessage, merge_messages
from local.demo_model.request_checks.anthropic_thinking import (
    THINKING_KINDS,
    check_thinking_blocks,
    check_thinking_setting,
    read_model_version,
)
from local.demo_model.request_checks.errors import RequestRejected, require
from local.demo_model.request_checks.image_sizes import find_media_type, measure_longest_side
from local.demo_model.request_checks.tool_schemas import check_schema

MAX_CACHE_BREAKPOINTS = 4
MAX_IMAGES = 100
MAX_IMAGE_CHARS = 5 * 1024 * 1024
MAX_SIDE_PIXELS = 8_000
MAX_LARGE_IMAGES = 20
"""In a request with more images, each side has at most MAX_SIDE_OF_MANY_PIXELS."""
MAX_SIDE_OF_MANY_PIXELS = 2_000

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
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def check_request(headers: Mapping[str, str], body: Any) -> None:
    """Raise RequestRejected for the first violation."""
    if not headers.get("x-api-key"):
        raise RequestRejected("x-api-key header is required", kind="authentication_error", status=401)
    if not headers.get("anthropic-version"):
        raise RequestRejected("anthropic-version: header is required")
    if not isinstance(body, dict):
        raise RequestRejected("The request body is not valid JSON.")
    _check_frame(body)
    _check_tools(body)
    _check_messages(body["messages"])
    merged_messages = merge_messages(body["messages"])
    _check_order(merged_messages)
    _check_final_blocks(merged_messages)
    _check_images(merged_messages)
    _check_pairs(merged_messages)
    _check_cache_breakpoints(body, merged_messages)
    check_thinking_setting(headers, body, merged_messages)
    check_thinking_blocks(body, merged_messages)


def _check_frame(body: dict[str, Any]) -> None:
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        require(name in body, f"{name}: Field required")
    require(isinstance(body["model"], str) and bool(body["model"]), "model: String should have at least 1 character")
    tokens = body["max_tokens"]
    require(isinstance(tokens, int) and tokens > 0, "max_tokens: Input should be greater than or equal to 1")
    max_output_tokens = _max_output_tokens(body["model"])
    allowed = f"which is the maximum allowed number of output tokens for {body['model']}"
    require(tokens <= max_output_tokens, f"max_tokens: {tokens} > {max_output_tokens}, {allowed}")
    require(isinstance(body["messages"], list) and bool(body["messages"]), "messages: at least one message is required")
    system = body.get("system") or []
    for index, block in enumerate([] if isinstance(system, str) else system):
        require(block.get("type") == "text", f"system.{index}.type: Input should be 'text'")
        require(bool(block.get("text", "").strip()), "system: text content blocks must be non-empty")


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    for index, tool in enumerate(tools):
        require(bool(_NAME.fullmatch(tool.get("name", ""))), f"tools.{index}.custom.name: String should match pattern")
        schema = tool.get("input_schema")
        require(isinstance(schema, dict), f"tools.{index}.custom.input_schema: Field required")
        require(schema.get("type") == "object", f"tools.{index}.custom.input_schema.type: Input should be 'object'")
        require(bool(tool.get("description", "x").strip()), f"tools.{index}.custom.description: String is too short")
        for word in ("oneOf", "anyOf", "allOf"):
            problem = f"tools.{index}.custom.input_schema: input_schema does not support {word} at the top level"
            require(word not in schema, problem)
        check_schema(f"tools.{index}.custom.input_schema", schema)
    require(len({tool["name"] for tool in tools}) == len(tools), "tools: Tool names must be unique.")
    if not tools and "tool_choice" in body:
        raise RequestRejected("tool_choice may only be specified while providing tools")


def _check_messages(messages: list[Any]) -> None:
    ids: Counter[str] = Counter()
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        require(isinstance(message, dict), f"{where}: Input should be a valid dictionary")
        require(message.get("role") in ("user", "assistant"), f'messages: Unexpected role "{message.get("role")}"')
        require(set(message) == {"role", "content"}, f"{where}: Extra inputs are not permitted")
        content = message["content"]
        require(bool(content), f"{where}: all messages must have non-empty content")
        if isinstance(content, str):
            require(bool(content.strip()), "messages: text content blocks must contain non-whitespace text")
            continue
        for number, block in enumerate(content):
            _check_block(f"{where}.content.{number}", message["role"], block)
            ids.update([block["id"]] if block["type"] == "tool_use" else [])
    require(not ids or max(ids.values()) == 1, "messages: `tool_use` ids must be unique")


def _check_block(where: str, role: str, block: ContentBlock) -> None:
    require(isinstance(block, dict), f"{where}: Input should be a valid dictionary")
    kind = block.get("type", "")
    require(
        kind in _BLOCK_MEMBERS,
        f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags",
    )
    require(
        _ROLES.get(kind, "assistant") in (None, role), f"{where}: `{kind}` blocks are not allowed in {role} messages"
    )
    allowed = _BLOCK_MEMBERS[kind] | ({"cache_control"} if kind not in THINKING_KINDS else set()) | {"type"}
    for name in sorted(block.keys() - allowed):
        raise RequestRejected(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    match kind:
        case "text":
            require(bool(block.get("text")), "messages: text content blocks must be non-empty")
            require(bool(block["text"].strip()), "messages: text content blocks must contain non-whitespace text")
        case "image":
            _check_image(where, block)
        case "tool_use":
            require(bool(_NAME.fullmatch(block.get("id", ""))), f"{where}.tool_use.id: String should match pattern")
            require(bool(_NAME.fullmatch(block.get("name", ""))), f"{where}.tool_use.name: String should match pattern")
            require(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            require(bool(_NAME.fullmatch(block.get("tool_use_id", ""))), f"{where}.tool_use_id: String should match")
            _check_result(where, block)
        case "redacted_thinking":
            require(isinstance(block.get("data"), str), f"{where}.redacted_thinking.data: Field required")


def _check_image(where: str, block: ContentBlock) -> None:
    source = block.get("source") or {}
    require(
        source.get("media_type") in _IMAGES, f"{where}.image.source.base64.media_type: Input should be 'image/jpeg'…"
    )
    try:
        base64.b64decode(source.get("data", ""), validate=True)
    except binascii.Error:
        raise RequestRejected(f"{where}.image.source.base64: invalid base64 data") from None
    stated, actual = source["media_type"], find_media_type(source.get("data", ""))
    require(
        actual in ("", stated),
        f"{where}.image.source.base64: The image was specified using the {stated} media type, but the image appears to "
        f"be a {actual} image",
    )


def _check_result(where: str, block: ContentBlock) -> None:
    content = block.get("content", "")
    for part in [] if isinstance(content, str) else content:
        require(part.get("type") in ("text", "image"), f"{where}.content: unexpected block")
        only_text = not block.get("is_error") or part["type"] == "text"
        require(only_text, f"{where}: all content must be type `text` if `is_error` is true")
        _check_block(where, "user", part)


def _check_order(messages: list[MergedMessage]) -> None:
    require(messages[0].role == "user", "messages: first message must use the `user` role")
    if messages[-1].role == "assistant":
        raise RequestRejected(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _check_final_blocks(messages: list[MergedMessage]) -> None:
    for index, message in enumerate(messages):
        kinds = [block["type"] for block in message.blocks]
        require(
            "tool_use" not in kinds or "text" not in kinds[kinds.index("tool_use") :],
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after",
        )
        kind = kinds[-1]
        require(
            kind not in THINKING_KINDS,
            f"messages.{index}: The final block in an assistant message cannot be `thinking`.",
        )


def _check_images(messages: list[MergedMessage]) -> None:
    images = [block for message in messages for block in _iter_blocks(message) if block["type"] == "image"]
    require(len(images) <= MAX_IMAGES, f"messages: too many images: {len(images)} > {MAX_IMAGES}")
    largest = max((len(image["source"]["data"]) for image in images), default=0)
    require(largest <= MAX_IMAGE_CHARS, f"image exceeds 5 MB maximum: {largest} bytes > {MAX_IMAGE_CHARS} bytes")
    is_many = len(images) > MAX_LARGE_IMAGES
    max_side = MAX_SIDE_OF_MANY_PIXELS if is_many else MAX_SIDE_PIXELS
    longest = max((measure_longest_side(image["source"]["data"]) for image in images), default=0)
    kind = " for many-image requests" if is_many else ""
    require(
        longest <= max_side, f"At least one of the image dimensions exceed max allowed size{kind}: {max_side} pixels"
    )


def _iter_blocks(message: MergedMessage) -> Iterator[ContentBlock]:
    for block in message.blocks:
        yield block
        content = block.get("content")
        yield from content if isinstance(content, list) else ()


def _check_pairs(messages: list[MergedMessage]) -> None:
    for index, message in enumerate(messages):
        preceding_blocks = messages[index - 1].blocks if index else []
        call_ids = [block["id"] for block in preceding_blocks if block["type"] == "tool_use"]
        results = [block for block in message.blocks if block["type"] == "tool_result"]
        for result in results:
            require(
                result["tool_use_id"] in call_ids,
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {result['tool_use_id']}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        leading_result_ids = [
            block["tool_use_id"] for block in message.blocks[: len(call_ids)] if block["type"] == "tool_result"
        ]
        unanswered = [call for call in call_ids if call not in leading_result_ids]
        require(
            not unanswered,
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(unanswered)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
        )
        require(len(results) == len(call_ids), "messages: each `tool_use` must have a single result.")


def _check_cache_breakpoints(body: dict[str, Any], messages: list[MergedMessage]) -> None:
    system = body.get("system") or []
    parts = [*(body.get("tools") or []), *([] if isinstance(system, str) else system)]
    parts += [block for message in messages for block in message.blocks] + [body]
    breakpoints = sum("cache_control" in part for part in parts)
    require(
        breakpoints <= MAX_CACHE_BREAKPOINTS,
        f"A maximum of {MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found {breakpoints}.",
    )


def _max_output_tokens(model: str) -> int:
    """Get the output limit of models of this version, by the most limited one."""
    version = read_model_version(model) or (9, 0)
    limits = (((3, 5), 4096), ((3, 7), 8192), ((4, 5), 32_000), ((4, 6), 64_000))
    return next((limit for newer_version, limit in limits if version < newer_version), 128_000)
