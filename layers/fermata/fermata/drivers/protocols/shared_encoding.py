"""Encode arguments of calls, results, images and schemas of tools as all protocols need them."""

from fermata.domain.blocks import ImageBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.tools import ToolSpec, read_sub_agent_text
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.protocols.encode_items_once import encode_compact_json

CONTINUE_PROMPT = "Continue."
OMITTED_SCREENSHOTS_NOTE = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"

_REFUSED_AT_THE_TOP = frozenset({"anyOf", "oneOf", "allOf", "enum", "not"})


def get_call_arguments(call: ToolCallBlock) -> dict[str, object]:
    """Return a call's arguments; none for a call that was cut off, because it never ran."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def build_tool_schema(spec: ToolSpec) -> dict[str, object]:
    """Return a tool's schema as all providers take it: an object with `properties` and no alternatives at its top.

    What is left out is checked when the tool is called. See docs/provider-rules.md.
    """
    schema = spec.input_schema
    if "properties" in schema and not _REFUSED_AT_THE_TOP & schema.keys():
        return schema
    return {"properties": {}} | {name: value for name, value in schema.items() if name not in _REFUSED_AT_THE_TOP}


@WeakCache
def encode_result(block: ToolResultBlock) -> str:
    """Encode a result's data as JSON, or its error as text, without a frame (decision 0255).

    The history is sent again with every round, so this is cached.
    """
    if not block.ok:
        return (block.error or "").strip() or "The tool failed."
    text = read_sub_agent_text(block.data)
    return encode_compact_json({"ok": True} if block.data is None else block.data) if text is None else text


@WeakCache
def encode_call_arguments(call: ToolCallBlock) -> str:
    """Encode a call's arguments as JSON; cached like `encode_result`."""
    return encode_compact_json(get_call_arguments(call))


def format_result_text(block: ToolResultBlock) -> str:
    """Format a result for a provider that reads text only: data or error, and how many images are left out."""
    text = encode_result(block)
    return f"{text}\n\n{OMITTED_SCREENSHOTS_NOTE.format(len(block.images))}" if block.images else text


def get_image_base64(image: ImageBlock) -> str:
    if image.data is None:
        raise ValueError("an image must be fetched before it is sent to a provider")
    return image.data


def image_to_data_url(image: ImageBlock) -> str:
    return f"data:{image.mime_type};base64,{get_image_base64(image)}"
