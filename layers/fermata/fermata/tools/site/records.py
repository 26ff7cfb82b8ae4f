"""How this toolset's records are made: what its server tools, browser reads and browser writes have in common."""

from collections.abc import Mapping
from typing import Any

from fermata.tools.patience import AGAIN, SECONDS
from fermata.tools.tool import Access, Affects, Execution, Handler, NoInput, ResultPolicy, Retry, Risk, Tool, ToolInput

TOOLSET = "site"
READ = frozenset({"site.read"})
STRUCTURE = frozenset({"site.structure.edit"})
STYLE = frozenset({"site.style.edit"})
CONTENT = STRUCTURE | {"site.content.edit"}
"""For what changes words or names only: either capability is enough."""
EVERYONE: frozenset[str] = frozenset()

_SCOPES = frozenset({TOOLSET})
_HEAVY = ResultPolicy(heavy=True)
_CHANGES = Affects(snapshot=True)


def server_read(
    name: str,
    description: str,
    run: Handler[Any],
    takes: type[ToolInput] = NoInput,
    *,
    instant: bool = True,
) -> Tool:
    """Not instant where it has to ask somebody else."""
    return Tool(
        name=name,
        toolset=TOOLSET,
        description=description,
        execution=Execution.SERVER,
        capability=Access.READ,
        input=takes,
        permissions=READ,
        scopes=_SCOPES,
        run=run,
        idempotent=True,
        instant=instant,
        retry=Retry() if instant else AGAIN,
        timeout_seconds=None if instant else SECONDS,
    )


def browser_read(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str] = READ,
    *,
    heavy: bool = False,
    vision_flag: str | None = None,
) -> Tool:
    return Tool(
        name=name,
        toolset=TOOLSET,
        description=description,
        execution=Execution.BROWSER,
        capability=Access.READ,
        input=takes,
        permissions=permissions,
        scopes=_SCOPES,
        idempotent=True,
        vision_flag=vision_flag,
        result=_HEAVY if heavy else ResultPolicy(),
    )


def browser_write(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str] = STRUCTURE,
    *,
    risk: Risk = Risk.MODERATE,
    sent_along: Mapping[str, Any] | None = None,
) -> Tool:
    return Tool(
        name=name,
        toolset=TOOLSET,
        description=description,
        execution=Execution.BROWSER,
        capability=Access.WRITE,
        input=takes,
        permissions=permissions,
        scopes=_SCOPES,
        risk=risk,
        affects=_CHANGES,
        sent_along=sent_along or {},
    )
