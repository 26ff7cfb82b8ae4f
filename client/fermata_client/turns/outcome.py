"""Outcome of a turn that was followed: its final view and the numbers of following it."""

from dataclasses import dataclass

from fermata_client.service.json_types import JsonObject
from fermata_client.turns.event_reducer import TurnView


@dataclass(frozen=True)
class TurnOutcome:
    view: TurnView
    conversation_id: str | None
    event_count: int
    """Events seen, each counted once."""
    reconnect_count: int
    seconds: float
    is_interrupted: bool = False
    """The user stopped the turn from this client."""

    @property
    def status(self) -> str:
        if self.is_interrupted and self.view.end is None:
            return "interrupted"
        return self.view.status

    @property
    def error(self) -> str | None:
        return str(self.view.end.get("message")) if self.view.end and self.view.status == "error" else None

    def to_summary(self) -> JsonObject:
        """Return the numbers of the turn as one flat JSON object."""
        tool_calls = self.view.tool_calls
        browser_tool_count = sum(call.is_browser_tool for call in tool_calls)
        members = {
            "status": self.status,
            "bridgeId": self.view.bridge_id,
            "conversationId": self.conversation_id,
            "rounds": len(self.view.rounds),
            "browserTools": browser_tool_count,
            "serverTools": len(tool_calls) - browser_tool_count,
            "events": self.event_count,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }
        if report := self.view.undo_report:
            members |= {"undone": len(report["undone"]), "skipped": len(report["skipped"])}
        return {name: value for name, value in members.items() if value is not None}
