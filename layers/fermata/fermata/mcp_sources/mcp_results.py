"""Turn the result of an MCP tool into the output that a model reads."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import mcp_types

from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.domain.tools import ToolImage, ToolOutput

MAX_MCP_IMAGES = 8
MAX_IMAGE_CHARS = 5_000_000
"""Of base64. A larger image is named instead of shown."""
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
NO_ERROR_TEXT = "The tool failed and said nothing about it."


def build_mcp_output(result: mcp_types.CallToolResult) -> ToolOutput:
    """Return what a model reads: the structured content if there is any, else the texts; and the images beside."""
    images = tuple(_list_images(result.content))
    texts = list(_list_texts(result.content))
    if result.is_error:
        return ToolOutput.failure("\n\n".join(texts).strip() or NO_ERROR_TEXT)
    data: Any = to_storable_json(result.structured_content)  # Python reads numbers that no JSON has
    if data is None:
        data = "\n\n".join(texts) or None
    elif others := [text for text in texts if not _says_the_same(text, data)]:
        data = {"structuredContent": data, "text": "\n\n".join(others)}
    return ToolOutput(ok=True, data=data, images=images or None)


def _says_the_same(text: str, data: Any) -> bool:
    """Return whether a text is the structured content once more, for clients that know no structured content."""
    if data == {"result": text}:
        return True
    try:
        return bool(json.loads(text) == data)
    except (ValueError, RecursionError):
        return False


def _list_images(content: Sequence[Any]) -> Iterator[ToolImage]:
    shown = (block for block in content if _is_shown(block))
    for block, _ in zip(shown, range(MAX_MCP_IMAGES), strict=False):
        is_image = isinstance(block, mcp_types.ImageContent)
        held, data = (block, block.data) if is_image else (block.resource, block.resource.blob)
        yield ToolImage(mime_type=held.mime_type, data=data)


def _is_shown(block: Any) -> bool:
    if isinstance(block, mcp_types.ImageContent):
        return block.mime_type in IMAGE_TYPES and len(block.data) <= MAX_IMAGE_CHARS
    if not isinstance(block, mcp_types.EmbeddedResource):
        return False
    resource = block.resource
    if not isinstance(resource, mcp_types.BlobResourceContents):
        return False
    return resource.mime_type in IMAGE_TYPES and len(resource.blob) <= MAX_IMAGE_CHARS


def _list_texts(content: Sequence[Any]) -> Iterator[str]:
    """Yield the texts, and a note about everything that a model cannot be shown."""
    image_count = 0
    for block in content:
        if _is_shown(block):
            image_count += 1
            if image_count <= MAX_MCP_IMAGES:
                continue
        match block:
            case mcp_types.TextContent():
                yield block.text
            case mcp_types.EmbeddedResource():
                yield _describe_resource(block.resource)
            case mcp_types.ResourceLink():
                about = f": {block.description}" if block.description else ""
                yield f"[resource {block.name} at {block.uri}{about}]"
            case mcp_types.ImageContent() | mcp_types.AudioContent():
                yield f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"


def _describe_resource(resource: Any) -> str:
    if isinstance(resource, mcp_types.TextResourceContents):
        return f"[resource {resource.uri}]\n{resource.text}"
    kind, size = resource.mime_type or "binary", len(resource.blob) * 3 // 4
    return f"[resource {resource.uri}, {kind}, {size:,} bytes, not shown]"
