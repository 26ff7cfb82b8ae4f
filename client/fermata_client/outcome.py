"""How a turn went."""

from dataclasses import dataclass
from typing import Any

from fermata_client.fold import TurnView


@dataclass(frozen=True)
class Outcome:
    """`interrupted` means that the user stopped it from here; `events` counts those that were seen, each once."""

    view: TurnView
    conversation_id: str | None
    events: int
    reconnects: int
    seconds: float
    interrupted: bool = False

    @property
    def status(self) -> str:
        if self.interrupted and self.view.end is None:
            return "interrupted"
        return self.view.status

    @property
    def error(self) -> str | None:
        return str(self.view.end.get("message")) if self.view.end and self.view.status == "error" else None

    def summary(self) -> dict[str, Any]:
        """The numbers of the turn as one flat JSON object."""
        tools = self.view.tools
        browser = sum(1 for badge in tools if badge.asked)
        members = {
            "status": self.status,
            "bridgeId": self.view.bridge_id,
            "conversationId": self.conversation_id,
            "rounds": len(self.view.rounds),
            "browserTools": browser,
            "serverTools": len(tools) - browser,
            "events": self.events,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }
        if report := self.view.report:
            members |= {"undone": len(report["undone"]), "skipped": len(report["skipped"])}
        return {name: value for name, value in members.items() if value is not None}
