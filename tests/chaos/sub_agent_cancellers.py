"""A user who cancels turns of sub-agents by themselves, while the turns that have asked for them wait."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.account_recorder import to_plain_row
from tests.chaos.judge.find_rows import turn_of
from tests.chaos.scheduler import Process
from tests.chaos.users import User

if TYPE_CHECKING:
    from tests.chaos.world import World

CANCEL_RATE = 0.1
"""How often one that is seen is cancelled."""


@dataclass
class SubAgentCancellers:
    """Looks at the turns that are open again and again."""

    world: "World"
    cancelled: list[str] = field(default_factory=list)
    """Turns whose cancellation was acknowledged."""

    def start(self) -> None:
        self.world.scheduler.start(Process("user"), self._work, name="user")

    def _work(self) -> None:
        scheduler = self.world.scheduler
        while True:
            scheduler.switch("user", scheduler.random.uniform(1.0, 10.0))
            for child, user in self._list_open_children():
                path = f"bridges/{child}/cancel"
                if scheduler.random.random() < CANCEL_RATE:
                    answer = self.world.cloud.request("api", "POST", path, User(user).token)
                    self.cancelled += [child] if answer.is_success else []

    def _list_open_children(self) -> list[tuple[str, str]]:
        rows = [to_plain_row(item) for item in self.world.cloud.dynamodb.tables["bridges"].items.values()]
        turns = [(turn_of(row), json.loads(row["data"])) for row in rows if row["sk"] == "turn" and "open" in row]
        return [(turn, pinned["user"]) for turn, pinned in turns if pinned.get("parent")]
