"""How this toolset's records are made: on one shelf, with the rights that most tools of a kind ask for."""

from collections.abc import Mapping
from typing import Any

from fermata.tools.factories import ToolFactory
from fermata.tools.tool import NoInput, ResultPolicy, Risk, Tool, ToolHandler, ToolInput

TOOLSET_NAME = "site"
CAN_READ_SITE = frozenset({"site.read"})
CAN_EDIT_STRUCTURE = frozenset({"site.structure.edit"})
CAN_EDIT_STYLE = frozenset({"site.style.edit"})
CAN_EDIT_CONTENT = CAN_EDIT_STRUCTURE | {"site.content.edit"}
"""For what changes words or names only: either capability is enough."""
EVERYONE: frozenset[str] = frozenset()

_SHELF = ToolFactory(TOOLSET_NAME)


def server_read(
    name: str,
    description: str,
    run: ToolHandler[Any],
    takes: type[ToolInput] = NoInput,
    *,
    instant: bool = True,
) -> Tool:
    """Not instant where it has to ask the tenant's content system."""
    kind = _SHELF.instant_read if instant else _SHELF.host_read
    return kind(name, description, takes, CAN_READ_SITE, run)


def browser_read(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str] = CAN_READ_SITE,
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
    permissions: frozenset[str] = CAN_EDIT_STRUCTURE,
    *,
    risk: Risk = Risk.MODERATE,
    extra_browser_input: Mapping[str, Any] | None = None,
) -> Tool:
    return _SHELF.browser_write(
        name, description, takes, permissions, risk=risk, extra_browser_input=extra_browser_input or {}
    )
