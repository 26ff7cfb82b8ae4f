"""Act as the editor of a turn, which executes browser tools and knows the document's snapshot and revision."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fermata_client.service.json_types import Event, JsonObject

ToolOutput = JsonObject
"""`{ok: true, data?, images?, revision?, inverse?}` or `{ok: false, error, conflict?, revision?, changes?}`."""

ToolExecutor = Callable[[Event], ToolOutput]
"""Carries out one `toolRequest`. An exception becomes a failed result that the model reads."""

SnapshotReader = Callable[[], Any]

RevisionReader = Callable[[], str | None]
"""Returns the document's current revision; None where the editor has no revisions."""


def refuse_browser_tool(request: Event) -> ToolOutput:
    """Refuse a browser tool, because this client shows no page."""
    return {"ok": False, "error": f"{request.get('toolName')} needs an open page, and this client has none."}


@dataclass(frozen=True)
class EditorCallbacks:
    executor: ToolExecutor
    snapshot: SnapshotReader | None
    revision: RevisionReader | None

    def read_snapshot(self) -> Any:
        return self.snapshot() if self.snapshot else None

    def read_revision(self) -> str | None:
        return self.revision() if self.revision else None
