"""Translate between the two names of a tool: canonical and prefixed.

Canonical names are the ones older editors use (`insertHtml`, `list_tokens`). Newer editors use prefixed names for the
same tools (`site_insert_html`, `site_list_tokens`); decision 0069. Only this module knows the rule.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from fermata.domain.agent_ids import SCOPES
from fermata.tools.tool import Tool

_BEHIND_NAMES = re.compile(r"(?:[<>({\[\n].*|(?::index)?[:#]\d+)$", re.S)
"""Marks of a template, the beginning of the arguments, or the number of the call."""
_WORD_ENDS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")
_NAMESPACE_WORDS = frozenset({
    "tool", "tools", "function", "functions", "func", "fn", "default", "api", "mcp", "call", "namespace", "commentary",
    "json", "assistant", "to",
})  # fmt: skip
"""Words that models put around names. A word that may change what is meant, such as a verb, is none of them."""


class ToolNaming(StrEnum):
    """The names that a client uses. The values are those of the header `Fermata-Tool-Names`."""

    CANONICAL = "seed"
    PREFIXED = "prefixed"


def get_wire_name(tool: Tool, naming: ToolNaming) -> str:
    """Return the name by which a client knows the tool."""
    return format_tool_name(tool.toolset, tool.name, naming)


def get_prefixed_name(tool: Tool) -> str:
    """Return the name that newer editors use, such as `site_insert_html`."""
    return format_tool_name(tool.toolset, tool.name, ToolNaming.PREFIXED)


def format_tool_name(toolset: str, name: str, naming: ToolNaming) -> str:
    """Return the wire name of a canonical name.

    Only toolsets of the editor's own scopes have prefixed names; other tools keep their name.

    Args:
        toolset: The toolset that the tool belongs to.
        name: The canonical name.
        naming: The variant of the names.
    """
    prefix = f"{toolset}_"
    if naming is ToolNaming.CANONICAL or toolset not in SCOPES or name.startswith(prefix):
        return name
    return prefix + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def make_name_key(name: str) -> str:
    """Reduce a name to its letters and digits, without case."""
    return "".join(filter(str.isalnum, name)).casefold()


def iter_name_keys(name: str) -> Iterator[str]:
    """Yield what a name that a model wrote may stand for: all of it, then without what it put before or behind.

    Models write the namespace of their training (`functions.x`, `default_api:x`, `tool_x`), or marks of their template
    and the number of the call behind (`x<|channel|>commentary`, `x:0`).
    """
    plain = _BEHIND_NAMES.sub("", name.strip().lstrip("<"))
    yield make_name_key(plain)
    for separators in (".", ":", "/", "=", "__"):
        if separators in plain:
            yield make_name_key(plain.rpartition(separators)[2])
    words = _WORD_ENDS.sub(" ", plain).split()
    while words and words[0].lower() in _NAMESPACE_WORDS:
        del words[0]
        yield make_name_key(" ".join(words))
    if words and words[-1].lower() in _NAMESPACE_WORDS:
        yield make_name_key(" ".join(words[:-1]))


def insert_tool_names(text: str, tools: Iterable[Tool], naming: ToolNaming) -> str:
    """Replace `{insertHtml}` in a prompt by the wire name of that tool; `{{` and `}}` become single braces.

    Args:
        text: The text, with names in braces.
        tools: The tools that it may name.
        naming: The variant of the names.

    Raises:
        KeyError: The text names a tool that is not among `tools`.
    """
    return text.format_map({tool.name: get_wire_name(tool, naming) for tool in tools})
