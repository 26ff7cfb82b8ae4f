"""Define the scopes: the parts of the editor that a conversation can belong to.

To add a scope, add its entry to SCOPES (docs/extending.md).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What one scope consists of. Each attribute is a path `package.module:name`.

    They are paths because every package reads the names of the scopes, and only `tools/registry.py` loads what is
    behind them (decision 0134).

    Attributes:
        toolset: A Toolset.
        prompt: A function from a ToolNaming to the stable part of the prompt.
        situation: A function from a snapshot and a ToolNaming to the part that changes from turn to turn.
    """

    toolset: str
    prompt: str
    situation: str


SCOPES: dict[str, Scope | None] = {
    "site": Scope(
        toolset="fermata.tools.site.toolset:SITE_TOOLSET",
        prompt="fermata.tools.site.prompt:system_prompt",
        situation="fermata.tools.site.situation:situation",
    ),
    "content": Scope(
        toolset="fermata.tools.content.toolset:CONTENT_TOOLSET",
        prompt="fermata.tools.content.prompt:system_prompt",
        situation="fermata.tools.content.situation:situation",
    ),
    "data": None,
    "plugin": Scope(
        toolset="fermata.tools.plugin.toolset:PLUGIN_TOOLSET",
        prompt="fermata.tools.plugin.prompt:system_prompt",
        situation="fermata.tools.plugin.situation:situation",
    ),
}
"""The scopes by their names. A scope of None has no tools, a general prompt and an empty situation."""
SCOPES_WITH_TOOLS = tuple(name for name, scope in SCOPES.items() if scope)

if TYPE_CHECKING:
    ScopeName = str
else:
    ScopeName = Literal[tuple(SCOPES)]
    """A name in SCOPES, as the models of requests and responses check and document it."""
