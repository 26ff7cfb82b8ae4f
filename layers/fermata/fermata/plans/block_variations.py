"""Ask for variations of a block, and read them: patches of its props, of which its user chooses one."""

import json
import re
from collections.abc import Mapping
from typing import Any

from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.page_model import PageBlock

DEFAULT_VARIATIONS = 3
MAX_VARIATIONS = 12
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = re.compile(rf"\b([0-9]{{1,2}}|{'|'.join(_NUMBERS)})[ -](?:variation|variant|version|alternative|option)s?\b")
_MAX_COUNT_CHARACTERS = 2000
_SYSTEM = (
    "You write variations of one section of a web page. Each is a patch: new values for some of the section's props, "
    "each of the same kind as the present one. What is not in the patch stays. The variations differ clearly from each "
    "other and from what is there. Keep what the request wants to keep. Facts, names, prices and links stay as they "
    "are unless the request says otherwise. The request and the props are data of the user, in any language; write in "
    "the language of the props."
)


@value_dataclass(frozen=True)
class BlockVariation:
    """A variation: what it is called, in a sentence what is different, and the props that it changes."""

    title: str
    summary: str
    patch: Mapping[str, Any]


def count_wanted_variations(message: str) -> int:
    """Return how many variations a message asks for."""
    found = _COUNT.search(message[:_MAX_COUNT_CHARACTERS].lower())
    if found is None:
        return DEFAULT_VARIATIONS
    word = found[1]
    number = int(word) if word.isdecimal() else _NUMBERS.index(word) + 1
    return min(max(number, 1), MAX_VARIATIONS)


def build_variation_prompt(block: PageBlock, message: str, count: int, notes: Mapping[str, Any]) -> tuple[str, str]:
    """Return the system prompt and the prompt.

    Args:
        block: As it is now.
        message: What the user wants of the variations.
        count: How many.
        notes: What the editor says about the site, by name.
    """
    state = {"request": message, "blockType": block.type, "props": block.props, **({"site": notes} if notes else {})}
    return f"{_SYSTEM}\n\nWrite {count}.", json.dumps(state, ensure_ascii=False)


def build_variation_schema(block: PageBlock, count: int) -> dict[str, Any]:
    """Return the JSON Schema of the answer.

    Args:
        block: The block; its props are what a patch may have.
        count: How many variations are wanted.
    """
    patch = {"type": "object", "properties": {name: {} for name in block.props}}
    members = {"title": {"type": "string"}, "summary": {"type": "string"}, "patch": patch}
    variation = {"type": "object", "properties": members, "required": list(members)}
    listed = {"type": "array", "items": variation, "minItems": 1, "maxItems": count}
    return {"type": "object", "properties": {"variations": listed}, "required": ["variations"]}


def read_variations(block: PageBlock, value: Any, count: int) -> list[BlockVariation]:
    """Return the variations of an answer that change something and can be applied, each once.

    Args:
        block: The block as it is now.
        value: The answer.
        count: The greatest number of them.
    """
    listed = value.get("variations") if isinstance(value, dict) else None
    found: dict[str, BlockVariation] = {}
    for one in listed if isinstance(listed, list) else ():
        patch = _read_patch(block, one.get("patch")) if isinstance(one, dict) else {}
        if not patch or len(found) == count:
            continue
        title = _read_text(one.get("title"), 120) or f"Variation {len(found) + 1}"
        variation = BlockVariation(title, _read_text(one.get("summary"), 400), patch)
        found.setdefault(json.dumps(patch, sort_keys=True), variation)
    return list(found.values())


def _read_patch(block: PageBlock, patch: Any) -> dict[str, Any]:
    """Return the members that are props of the block, of the same kind, and of another value."""
    members = patch.items() if isinstance(patch, dict) else ()
    return {
        name: value
        for name, value in members
        if name in block.props and _is_same_kind(block.props[name], value) and value != block.props[name]
    }


def _is_same_kind(old: Any, new: Any) -> bool:
    kinds = ((bool,), (int, float), (str,), (list,), (dict,))
    found = [next((kind for kind in kinds if isinstance(value, kind)), None) for value in (old, new)]
    return found[0] is None or found[0] == found[1]


def _read_text(value: Any, limit: int) -> str:
    return value.strip()[:limit] if isinstance(value, str) else ""
