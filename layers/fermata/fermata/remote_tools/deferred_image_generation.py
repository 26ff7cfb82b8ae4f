"""Put a placeholder in the place of an image that is generated later, when a plan uses it (decision 0400)."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.remote_tools.tool_manifest import normalize_tool_name

DEFERRED_TOOL_NAME = "image.generate"
_SIZES = {"landscape": (1536, 1024), "square": (1024, 1024), "portrait": (1024, 1536)}
_PLACEHOLDER = re.compile(r"https://deferred\.invalid/image-(\d{1,6})-(\d{1,4})(?!\d)")


class DeferredCall(NamedTuple):
    """The place of a call in its turn."""

    round: int
    number: int


def is_deferrable(tool_name: str) -> bool:
    """Return whether a built-in tool of this name is slow, and what it makes can be put in later."""
    return normalize_tool_name(tool_name) == DEFERRED_TOOL_NAME


def build_placeholder(call: DeferredCall) -> str:
    """Return the address that stands for the image of a call. No name below `invalid` is ever reached."""
    return f"https://deferred.invalid/image-{call.round}-{call.number}"


def defer_image(arguments: Mapping[str, Any], effect_key: str) -> ToolOutput:
    """Return what the model reads at once of an image that is generated later.

    Args:
        arguments: Of the call, valid.
        effect_key: Of the call.
    """
    prompt = str(arguments["prompt"]).strip()
    if not prompt:
        return ToolOutput.failure("The prompt is empty: describe the image.")
    _, round_, index = effect_key.rsplit("/", 2)
    width, height = _SIZES[arguments.get("aspectRatio") or "landscape"]
    url = build_placeholder(DeferredCall(int(round_), int(index)))
    data = {"imageUrl": url, "alt": prompt[:300], "width": width, "height": height}
    return ToolOutput(ok=True, data=data, execution=ToolExecution(attempts=0, deferred=True))


def find_deferred_calls(value: Any) -> list[DeferredCall]:
    """Return the calls whose placeholders are in a JSON value, each once, in the order in which they occur."""
    found = _PLACEHOLDER.findall(json.dumps(value, ensure_ascii=False))
    return list(dict.fromkeys(DeferredCall(int(round_), int(index)) for round_, index in found))


def replace_placeholders(value: Any, urls: Mapping[DeferredCall, str]) -> Any:
    """Return a JSON value with addresses in the place of placeholders. One without an address is removed.

    Args:
        value: The value.
        urls: The addresses that are known.
    """
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: urls.get(DeferredCall(int(match[1]), int(match[2])), ""), value)
    if isinstance(value, list):
        return [replace_placeholders(item, urls) for item in value]
    if isinstance(value, dict):
        return {name: replace_placeholders(member, urls) for name, member in value.items()}
    return value
