"""How a turn went."""

from dataclasses import dataclass
from typing import Any

from fermata_client.turns.view import TurnView


@dataclass(frozen=True)
class TurnOutcome:
    """`interrupted` means that the user stopped it from here; `events` counts those that were seen, each once."""

    view: TurnView
    conversation_id: str | None
    event_count: int
    reconnect_count: int
    seconds: float
    is_interrupted: bool = False

    @property
    def status(self) -> str:
        if self.is_interrupted and self.view.end is None:
            return "interrupted"
        return self.view.status

    @property
    def error(self) -> str | None:
        return str(self.view.end.get("message")) if self.view.end and self.view.status == "error" else None

    def to_summary(self) -> dict[str, Any]:
        """The numbers of the turn as one flat JSON object."""
        tools = self.view.tool_calls
        browser = sum(1 for badge in tools if badge.is_browser_tool)
        members = {
            "status": self.status,
            "bridgeId": self.view.bridge_id,
            "conversationId": self.conversation_id,
            "rounds": len(self.view.rounds),
            "browserTools": browser,
            "serverTools": len(tools) - browser,
            "events": self.event_count,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }
        if report := self.view.undo_report:
            members |= {"undone": len(report["undone"]), "skipped": len(report["skipped"])}
        return {name: value for name, value in members.items() if value is not None}
