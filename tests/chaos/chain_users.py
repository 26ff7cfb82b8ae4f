"""Users of a planner's session whose requests are too large for one plan: tabs go on with their steps at once."""

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from fermata.turns.turn import Turn
from fermata.wire.http.messages import Response
from tests.chaos.browser import ABANDON_RATE, MAX_START_ATTEMPTS, Browser
from tests.chaos.evidence import ClientTurn
from tests.chaos.planner_users import FREE_PAGE, HELD_PAGES, LOOK_SECONDS, SESSION, PlannerUsers, make_operations
from tests.chaos.provider import make_prompt
from tests.chaos.simulated_cloud import HttpAnswer
from tests.chaos.users import User

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions

CHAT_PATH = "planner/chat"
REQUESTS = 2
"""How many large requests are made, one after the other."""
STEPS = (1, 3)
"""How many steps follow the first plan of one, at least and at most."""
FREE_RATES = (0.3, 0.7, 1.0)
"""How many plans change one page only, and are applied at once. One of them for each seed."""
INTERRUPTION_RATE = 0.5
NAMED_RATE = 0.5
"""How often a tab names the chain that it means."""
MAX_CONTINUATIONS = 25
NO_CHAIN_WORDS = "no chain of plans"


def answer_with_turn(_context: Any, turn: Turn, *_: Any, **__: Any) -> Response:
    """Take the place of `send_log`: simulated browsers read the log themselves."""
    return Response(202, {"bridgeId": turn.id})


class ChatBrowser(Browser):
    """Tabs that show a turn of a planner's chat. What a chat is refused without a turn is not tried again."""

    interruptions: list[tuple[str, float]]

    def send_start(self) -> HttpAnswer:
        if "whenBusy" in self.body:
            self.interruptions.append((self.turn.conversation, self.scheduler.now))
        return super().send_start()

    def start(self) -> None:
        answer = HttpAnswer(0)
        for _ in range(MAX_START_ATTEMPTS):
            answer = self.send_start()
            if answer.is_success:
                self.turn.bridge = answer.body["bridgeId"]
                return
            if answer.is_final or _is_refused_without_turn(answer):
                break
            if answer.status >= 500 and self.scheduler.random.random() < ABANDON_RATE:
                self.turn.is_abandoned = True
                return
            self.scheduler.switch("browser retry", 5.0)
        self.turn.error = answer.error


def _is_refused_without_turn(answer: HttpAnswer) -> bool:
    return isinstance(answer.body, dict) and answer.body.get("status") == "validation_error"


class ChainUsers(PlannerUsers):
    """As those of a session, and two tabs that go on with the steps of a large request."""

    _lets_the_last_expire = False

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("functions.stream_turns.app.send_log", answer_with_turn)

    def start(self, actions: "UserActions") -> None:
        self.chains: list[list[str]] = []
        """What the plans of each large request say: the first one, and its steps."""
        self.has_come_to_the_end = False
        """Whether a tab was told that no step is left."""
        self._tabs = itertools.count()
        super().start(actions)

    def _ask_for_plans(self) -> None:
        scheduler = self.world.scheduler
        for number in range(REQUESTS):
            steps = [f"p{number}s{step}" for step in range(scheduler.random.randint(*STEPS))]
            self.chains.append([f"p{number}", *steps])
            self.plans += self.chains[-1]
            self._plan(f"p{number}", [self._write(step) for step in steps])
            for step in steps:
                self._plan(step, [self._write(f"{step}x")])  # a step has no steps
            self._chat(f"p{number}", {"message": self._write(f"p{number}")})
            tabs = [self._begin(partial(self._go_on, number)) for _ in range(2)]
            scheduler.wait("planner", lambda tabs=tabs: all(tab.is_over for tab in tabs))  # type: ignore[misc]

    def _choose(self) -> bool | None:
        """In one seed of three nobody drops a plan, so that each step is planned."""
        choice = super()._choose()
        return None if choice is False and self.world.seed % 3 == 0 else choice

    def _write(self, name: str) -> str:
        return make_prompt(name, 2, self.world.seed)

    def _plan(self, name: str, next_steps: list[str]) -> None:
        """Say what the model plans when it is asked for something."""
        is_free = self.world.scheduler.random.random() < FREE_RATES[self.world.seed % len(FREE_RATES)]
        operations = make_operations(name, (FREE_PAGE,) if is_free else HELD_PAGES)
        plan = {"intent": "edit_plan", "summary_for_user": name, "ops": operations, "next_steps": next_steps}
        self.world.cloud.provider.planned_calls[name] = [("submit_edit_plan", plan)]

    def _chat(self, name: str, members: dict[str, Any]) -> ClientTurn:
        turn = ClientTurn(name, "prompt", self.conversation, dialect=self.world.dialect)
        body = {"session": SESSION, **members}
        browser = ChatBrowser(self.world.cloud, self.world.page, User("ada"), turn, body, CHAT_PATH)
        browser.interruptions = self.world.queuers.interruptions
        self._actions.browsers.append(browser)
        browser.run()
        return turn

    def _go_on(self, number: int) -> None:
        """Ask for the next step until there is none."""
        scheduler = self.world.scheduler
        for _ in range(MAX_CONTINUATIONS):
            scheduler.switch("planner", scheduler.random.uniform(*LOOK_SECONDS) / 3)
            members: dict[str, Any] = {"executionMode": "continue_chain"}
            if scheduler.random.random() < INTERRUPTION_RATE:
                members["whenBusy"] = "interrupt"
            turn = self._chat(f"p{number}tab{next(self._tabs)}", members)
            self.has_come_to_the_end = NO_CHAIN_WORDS in turn.error
            if self.has_come_to_the_end:
                return
