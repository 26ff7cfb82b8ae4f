"""Give a tool a name that every model provider accepts."""

import re
from collections.abc import Collection

MAX_ALIAS_CHARS = 64
"""OpenAI and Anthropic accept no longer names in all their APIs."""
RESERVED_ALIASES = frozenset({"submit_edit_plan"})
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def make_provider_alias(name: str, used: Collection[str] = RESERVED_ALIASES, max_chars: int = MAX_ALIAS_CHARS) -> str:
    """Return a name of letters, digits, `_` and `-` that is not used yet; a clash gets a number at its end.

    Args:
        name: The name of the manifest, such as `pim.getProduct`.
        used: The names that are taken, in any case: so names of tools are compared.
        max_chars: The greatest length.
    """
    safe = _UNSAFE.sub("_", name.strip())
    if not safe or safe[0].isdigit():
        safe = f"tool_{safe}"
    taken = {one.casefold() for one in used}
    alias, number = safe[:max_chars], 0
    while alias.casefold() in taken:
        number += 1
        suffix = f"_{number}"
        alias = safe[: max_chars - len(suffix)] + suffix
    return alias
