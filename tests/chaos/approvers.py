"""People who decide about tool calls, at the same time and not always in time."""

import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tests.chaos.scheduler import Process
from tests.chaos.users import User

if TYPE_CHECKING:
    from tests.chaos.world import World

APPROVERS = ("grace", "edsger")
LATE_RATE = 0.15
"""How often an approver leaves a call to the other one, or for later."""
FORGOTTEN_EVERY = 6
"""Nobody ever decides about one call in so many."""
REPEAT_RATE = 0.3
DENIAL_RATE = 0.35


@dataclass(frozen=True)
class SentDecision:
    """What an approver has sent, and how the service has answered."""

    approval: str
    user: str
    is_approved: bool
    status: int


@dataclass
class Approvers:
    """Two people who look at the list again and again. They may decide about the same call at the same moment."""

    world: "World"
    sent: list[SentDecision] = field(default_factory=list)

    def start(self) -> None:
        for name in APPROVERS:
            self.world.scheduler.start(Process(name), partial(self._work, User(name)), name=name)

    def _work(self, user: User) -> None:
        scheduler = self.world.scheduler
        draw = scheduler.random
        while True:
            scheduler.switch("approver", draw.uniform(0.5, 8.0))
            listed = self.world.cloud.request("tool_result", "GET", "approvals", user.token)
            for approval in listed.body["approvals"] if listed.is_success else ():
                is_forgotten = zlib.crc32(approval["approvalId"].encode()) % FORGOTTEN_EVERY == 0
                if not is_forgotten and draw.random() >= LATE_RATE:
                    self._decide(user, approval["approvalId"], is_approved=draw.random() >= DENIAL_RATE)

    def _decide(self, user: User, approval: str, *, is_approved: bool) -> None:
        scheduler = self.world.scheduler
        for _ in range(3):
            body = {"approved": is_approved, "reason": f"says {user.name}"}
            answer = self.world.cloud.request("tool_result", "POST", f"approvals/{approval}", user.token, body)
            self.sent.append(SentDecision(approval, user.name, is_approved, answer.status))
            is_repeated = answer.is_success and scheduler.random.random() < REPEAT_RATE
            if not is_repeated and answer.status < 500:
                return
            scheduler.switch("approver", scheduler.random.uniform(0.0, 3.0))
