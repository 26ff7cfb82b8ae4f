"""How this toolset's records are made: on one shelf, with the rights that most tools of a kind ask for."""

from collections.abc import Mapping
from typing import Any

from fermata.tools.shelf import Shelf
from fermata.tools.tool import Handler, NoInput, ResultPolicy, Risk, Tool, ToolInput

TOOLSET = "site"
READ = frozenset({"site.read"})
STRUCTURE = frozenset({"site.structure.edit"})
STYLE = frozenset({"site.style.edit"})
CONTENT = STRUCTURE | {"site.content.edit"}
"""For what changes words or names only: either capability is enough."""
EVERYONE: frozenset[str] = frozenset()

_SHELF = Shelf(TOOLSET)


def server_read(
    name: str,
    description: str,
    run: Handler[Any],
    takes: type[ToolInput] = NoInput,
    *,
    instant: bool = True,
) -> Tool:
    """Not instant where it has to ask the tenant's content system."""
    kind = _SHELF.instant if instant else _SHELF.asked
    return kind(name, description, takes, READ, run)


def browser_read(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str] = READ,
    *,
    heavy: bool = False,
    vision_flag: str | None = None,
) -> Tool:
    policy = ResultPolicy(heavy=heavy)
    return _SHELF.browser_read(name, description, takes, permissions, result=policy, vision_flag=vision_flag)


def browser_write(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str] = STRUCTURE,
    *,
    risk: Risk = Risk.MODERATE,
    sent_along: Mapping[str, Any] | None = None,
) -> Tool:
    return _SHELF.browser_write(name, description, takes, permissions, risk=risk, sent_along=sent_along or {})
