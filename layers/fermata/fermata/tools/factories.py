"""Makes the records of one toolset: what all of its tools of a kind have in common stands here."""

from dataclasses import dataclass
from typing import Any

from fermata.tools.host_timeouts import HOST_RETRY_POLICY, HOST_TIMEOUT_SECONDS
from fermata.tools.tool import Access, Execution, Tool, ToolEffects, ToolHandler, ToolInput

SNAPSHOT_EFFECTS = ToolEffects(snapshot=True)
"""Whoever writes changes what the editor shows."""


@dataclass(frozen=True)
class ToolFactory:
    """Every tool on it belongs to the scope of the toolset's name. `more` is whatever else a record has."""

    toolset: str

    def instant_read(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], run: ToolHandler[Any]
    ) -> Tool:
        """A read that is answered here, from what the turn has at hand."""
        return self._read(name, description, takes, permissions, run=run, execution=Execution.SERVER, instant=True)

    def host_read(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], run: ToolHandler[Any]
    ) -> Tool:
        """A read that the tenant's content system answers."""
        more = {"execution": Execution.SERVER, "retry": HOST_RETRY_POLICY, "timeout_seconds": HOST_TIMEOUT_SECONDS}
        return self._read(name, description, takes, permissions, run=run, **more)

    def browser_read(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], **more: Any
    ) -> Tool:
        return self._read(name, description, takes, permissions, execution=Execution.BROWSER, **more)

    def browser_write(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], **more: Any
    ) -> Tool:
        own = {"execution": Execution.BROWSER, "capability": Access.WRITE, "affects": SNAPSHOT_EFFECTS}
        return self.tool(name, description, takes, permissions, **own, **more)

    def tool(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], **more: Any
    ) -> Tool:
        return Tool(
            name=name,
            toolset=self.toolset,
            description=description,
            input=takes,
            permissions=permissions,
            scopes=frozenset({self.toolset}),
            **more,
        )

    def _read(
        self, name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], **more: Any
    ) -> Tool:
        return self.tool(name, description, takes, permissions, capability=Access.READ, idempotent=True, **more)
