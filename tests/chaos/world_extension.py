"""Extend a simulation by those who use a part of the service that only some kinds of simulations have."""

from typing import TYPE_CHECKING, Any

import pytest

from fermata.aws.resources import Resources
from tests.chaos.scheduler import Process, Task

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions
    from tests.chaos.world import World


class WorldExtension:
    """Users and servers besides those of every simulation. This one has none.

    Attributes:
        scope: Of the conversations in `owners`.
        child_scope: Of the turns of sub-agents in them; empty if it is the same.
        patience_seconds: How much longer it may take until nothing runs any more.
        task_name: What the scheduler calls its users.
        conversation: The one in which they talk, if it is one; empty until it is there.
    """

    scope = "site"
    child_scope = ""
    patience_seconds = 0.0
    task_name = "agents"

    def __init__(self, world: "World") -> None:
        self.world = world
        self.conversation = ""
        self._tasks: list[Task] = []

    @property
    def owners(self) -> dict[str, str]:
        """Conversations of its users, and whose they are."""
        return {self.conversation: "ada"} if self.conversation else {}

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """Put what is simulated in the place of what is not."""

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        """Store what its users find there on the first day."""

    def start(self, actions: "UserActions") -> None:
        """Let its users begin."""

    def _begin(self, act: Any) -> Task:
        task = self.world.scheduler.start(Process(self.task_name), act, name=self.task_name)
        self._tasks.append(task)
        return task

    @property
    def is_over(self) -> bool:
        """Whether its users have done what they wanted."""
        return all(task.is_over for task in self._tasks)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way besides."""
        return True
