"""Encode arguments of calls, results, images and schemas of tools as all protocols need them."""

from fermata.domain.blocks import ImageBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.tools import ToolSpec, read_sub_agent_text
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.protocols.encode_items_once import encode_compact_json

CONTINUE_PROMPT = "Continue."
OMITTED_SCREENSHOTS_NOTE = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"


def get_call_arguments(call: ToolCallBlock) -> dict[str, object]:
    """Return a call's arguments; none for a call that was cut off, because it never ran."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def schema_with_properties(spec: ToolSpec) -> dict[str, object]:
    """Return a tool's schema; some providers refuse an object schema without `properties`, even for no arguments."""
    return spec.input_schema if "properties" in spec.input_schema else {**spec.input_schema, "properties": {}}


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
