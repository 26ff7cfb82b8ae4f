"""Users who ask a model without a conversation, by requests that nobody stores."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from fermata.aws.resources import Resources
from tests.chaos.provider import SimulatedConnection, make_prompt
from tests.chaos.users import User
from tests.chaos.world_extension import WorldExtension

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions

CONNECTION = "fermata.drivers.transport.http_connection.HttpConnection"
USERS = 3
REQUESTS_EACH = 3
PAUSE_SECONDS = 8.0


@dataclass
class SentGeneration:
    """One request, and how it was answered.

    Attributes:
        name: The prompt says it, and no other one does.
        status: Of the answer; 0 as long as there is none.
    """

    name: str
    status: int = 0
    text: str = ""


class GenerateUsers(WorldExtension):
    """Programs that ask for texts at the same time. What fails is asked for again, as another request."""

    scope = "content"
    task_name = "generate"
    patience_seconds = 300.0
    """How long a request is left to a function that has died."""
    sent: list[SentGeneration]

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(CONNECTION, self._open_connection)

    def _open_connection(self, *, total_seconds: float, **_: Any) -> "ClosedConnection":
        return ClosedConnection(self.world, total_seconds)

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        self.sent = []
        self._model = {"credentialId": credential, "modelId": model}

    def start(self, actions: "UserActions") -> None:
        self._numbers: Iterator[int] = itertools.count()
        for _ in range(USERS):
            self._begin(partial(self._work))

    @property
    def owners(self) -> dict[str, str]:
        return {"": "ada"}

    def _work(self) -> None:
        scheduler = self.world.scheduler
        for _ in range(REQUESTS_EACH):
            scheduler.switch("generate", scheduler.random.uniform(0.0, PAUSE_SECONDS))
            sent = SentGeneration(f"g{next(self._numbers)}")
            self.sent.append(sent)
            body = {**self._model, "prompt": make_prompt(sent.name, 1, self.world.seed)}
            answer = self.world.cloud.request("credentials", "POST", "generate", User("ada").token, body)
            if answer.is_success:
                sent.text = answer.body["text"]
            sent.status = answer.status


class ClosedConnection(SimulatedConnection):
    """A connection that is closed after the request, and has less time for it than one of a round."""

    def __init__(self, world: Any, total_seconds: float) -> None:
        super().__init__(world.scheduler, world.cloud.provider)
        self._total_seconds = total_seconds

    @contextmanager
    def call_scope(self) -> Iterator[None]:
        is_first = not self._depth
        with super().call_scope():
            if is_first:
                self._deadline = self._scheduler.now + self._total_seconds
            yield

    def close(self) -> None:
        """Nothing is left open in memory."""
