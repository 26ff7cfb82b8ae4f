"""A bakery whose tools need a person, and people who decide about them."""

from dataclasses import dataclass, field
from typing import Any

from fermata.domain.caller import Caller
from fermata.domain.events import ApprovalDecidedEvent, ApprovalRequestedEvent
from fermata.tools.tool import Access, Approval, Execution, Risk, Tool, ToolContext, ToolInput
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.approval_record import ApprovalRecord
from fermata.turns.approvals.decide_approval import decide_approval
from tests.unit.turns.stage import ADA, Stage, reply_with_calls, tool_call_block

HEAD_BAKER = Caller(tenant="bakery", user="grace", capabilities=frozenset({"ai.chat", "ai.tools.approve"}))
YES = ApprovalAnswer(is_approved=True)
NO = ApprovalAnswer(is_approved=False, reason="Too many loaves.")


class BakeInput(ToolInput):
    loaves: int


@dataclass
class Oven:
    """Remembers what was baked."""

    baked: list[int] = field(default_factory=list)

    def bake(self, tool_input: BakeInput, _context: ToolContext) -> dict[str, int]:
        self.baked.append(tool_input.loaves)
        return {"loaves": tool_input.loaves}


def make_bake_tool(oven: Oven, **members: Any) -> Tool:
    defaults: dict[str, Any] = {
        "name": "bake",
        "toolset": "site",
        "description": "Bakes loaves. They cannot be taken back.",
        "execution": Execution.SERVER,
        "access": Access.WRITE,
        "input_model": BakeInput,
        "handler": oven.bake,
        "risk": Risk.HIGH,
        "approval": Approval.ALWAYS,
    }
    return Tool(**(defaults | members))


def make_sell_tool(**members: Any) -> Tool:
    defaults: dict[str, Any] = {
        "name": "sell",
        "toolset": "site",
        "description": "Sells loaves in the editor.",
        "execution": Execution.BROWSER,
        "access": Access.WRITE,
        "input_model": BakeInput,
        "approval": Approval.ALWAYS,
    }
    return Tool(**(defaults | members))


@dataclass
class Bakery:
    """A stage with these tools, and what happens there."""

    stage: Stage
    oven: Oven = field(default_factory=Oven)

    def __post_init__(self) -> None:
        self.stage.add_tools(make_bake_tool(self.oven), make_sell_tool())

    def ask_for(self, *calls: tuple[str, int], then: str = "Done.") -> None:
        """Start a turn whose model makes these calls, and run it until it waits."""
        self.stage.start_turn("Bake something")
        blocks = [tool_call_block(name, loaves=loaves) for name, loaves in calls]
        self.stage.script_replies(reply_with_calls(*blocks), then)
        assert self.stage.run_workflow() == "waiting"

    @property
    def requested(self) -> list[ApprovalRequestedEvent]:
        return [event for event in self.stage.events() if isinstance(event, ApprovalRequestedEvent)]

    @property
    def decided(self) -> list[ApprovalDecidedEvent]:
        return [event for event in self.stage.events() if isinstance(event, ApprovalDecidedEvent)]

    def decide(self, answer: ApprovalAnswer = YES, index: int = 0, caller: Caller = HEAD_BAKER) -> ApprovalRecord:
        return decide_approval(self.stage.resources, caller, self.requested[index].approval_id, answer)

    def results(self) -> list[Any]:
        return self.stage.results_sent_to_model()


ASKER = ADA.model_copy(update={"capabilities": ADA.capabilities | {"ai.tools.approve"}})
