"""Act as the users and operators of a simulation, as its seed draws it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fermata.conversations.purge import purge_deleted_conversations
from fermata.domain.errors import Conflict
from fermata.usage.rollups.rebuild import rebuild_rollups
from tests.chaos.browser import Browser
from tests.chaos.evidence import ClientTurn
from tests.chaos.page import Page
from tests.chaos.scheduler import Process, Task
from tests.chaos.simulated_cloud import FunctionProcess, HttpAnswer, SimulatedCloud
from tests.chaos.users import TENANT, User

UNDO_RATE = 0.55
THROUGH_RATE = 0.3
AUDIT_RATE = 0.3
KEY_CHANGE_RATE = 0.15
SECOND_USER_RATE = 0.4
DELETION_RATE = 0.5
RENAMING_RATE = 0.2
MAX_ROUNDS = 3
RUSHING_USERS = (User("carol"), User("carol"), User("dave"), User("erin"))
"""Prompts of one user are counted one after the other. Those of several reach the budget at the same moment."""
RUSH_DELAYS_SECONDS = (0.0, 45.0)
"""Before the first account of the budget is opened, and when the turns of others have used some of it."""
AUDITORS = 3
"""Who read audits at the same time while a rebuild is under way."""
MAX_AUDITS_IN_A_ROW = 60


@dataclass
class UserActions:
    cloud: SimulatedCloud
    page: Page
    seed: int
    conversation: str
    credential: str
    model: str
    turn_count: int
    dialect: str
    rush_rate: float
    conversations: dict[str, User] = field(default_factory=dict)
    """All conversations that were created, with their users."""
    browsers: list[Browser] = field(default_factory=list)
    audits: list[int] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    """What conversations were renamed to."""
    _tasks: list[Task] = field(default_factory=list)
    _rebuilds: int = 0
    """How many rebuilds of rollups run now."""

    def __post_init__(self) -> None:
        self.ada, self.bob = User("ada"), User("bob")
        self._scheduler = self.cloud.scheduler
        self._draw = self.cloud.scheduler.random
        self.conversations[self.conversation] = self.ada

    @property
    def is_over(self) -> bool:
        return all(task.is_over for task in self._tasks) and all(browser.is_over for browser in self.browsers)

    def start(self) -> None:
        self._begin("ada", self._work)
        for rate, name, act in (
            (AUDIT_RATE, "auditor", self._read_audits),
            (self.cloud.habits.rebuild, "operator", self._rebuild_twice),
            (KEY_CHANGE_RATE, "owner", self._change_key),
            (RENAMING_RATE, "owner", self._rename),
            (SECOND_USER_RATE, "bob", self._work_in_a_new_conversation),
            (self.rush_rate, "carol", self._prompt_in_several_conversations),
        ):
            if self._draw.random() < rate:
                self._begin(name, act)

    def _begin(self, name: str, act: Callable[[], object], delay: float = 0.0) -> None:
        self._tasks.append(self._scheduler.start(Process(name), act, name=name, delay=delay))

    # the user who works

    def _work(self) -> None:
        for number in range(self.turn_count):
            undone = self._choose_turn_to_undo() if self._draw.random() < UNDO_RATE else None
            browser = self.make_prompt(f"t{number}") if undone is None else self.make_undo(f"u{number}", undone)
            if self._draw.random() < self.cloud.habits.cancel:
                delay = self._draw.choice((0.0, 0.0, self._draw.uniform(0, 3), self._draw.uniform(0, 40)))
                self._begin("user", lambda browser=browser, delay=delay: browser.cancel(delay))  # type: ignore[misc]
            if self._draw.random() < self.cloud.habits.rival:
                rival = self.make_prompt(f"r{number}", max_rounds=1)
                self._begin("rival", rival.run)
            browser.run()

    def make_prompt(
        self, name: str, *, user: User | None = None, conversation: str = "", max_rounds: int = MAX_ROUNDS
    ) -> Browser:
        turn = ClientTurn(name, "prompt", conversation or self.conversation, dialect=self.dialect)
        browser = Browser(self.cloud, self.page, user or self.ada, turn)
        self.browsers.append(browser)
        browser.write_prompt(self._draw.randint(1, max_rounds), self.seed)
        return browser

    def _choose_turn_to_undo(self) -> Browser | None:
        """Choose a turn with edits, which may itself be an undo: then the edits are redone."""
        edited = [browser for browser in self.browsers if browser.turn.has_ended and browser.turn.acknowledged]
        weights = [3 if browser.turn.kind == "undo" else 1 for browser in edited]
        return self._draw.choices(edited, weights)[0] if edited else None

    def make_undo(self, name: str, undone: Browser) -> Browser:
        effects = [result["data"]["effect"] for result in undone.turn.acknowledged.values() if result["ok"]]
        body: dict[str, Any] = {}
        if effects and self._draw.random() < THROUGH_RATE:
            body["through"] = self._draw.choice(effects)
        turn = ClientTurn(name, "undo", undone.turn.conversation, dialect=self.dialect)
        path = f"bridges/{undone.turn.bridge}/undo"
        browser = Browser(self.cloud, self.page, self.ada, turn, body, path)
        self.browsers.append(browser)
        return browser

    # others

    def _ask(self, function: str, method: str, path: str, body: Any = None, user: User | None = None) -> HttpAnswer:
        """Send a request until it is answered."""
        answer = HttpAnswer(0)
        for _ in range(20):
            answer = self.cloud.request(function, method, path, (user or self.ada).token, body)
            if answer.is_success or answer.is_final:
                return answer
            self._scheduler.switch("browser retry", 3.0)
        return answer

    def read_audit(self) -> None:
        """Read an audit. One that another overtakes is compared with those before it only."""
        known = max(self.audits, default=0)
        answer = self.cloud.request("api", "GET", "audit?since=2026-01-01", self.ada.token)
        if answer.is_success:
            totals = answer.body["totals"]
            shown = totals["promptTokens"] + totals["completionTokens"]
            if shown < known:
                self.complaints.append(f"an audit shows {shown} tokens, and an earlier one has shown {known}")
            self.audits.append(shown)
            self.audits.sort()

    def _read_audits(self) -> None:
        for _ in range(8):
            self._scheduler.switch("auditor", self._draw.uniform(1.0, 20.0))
            self.read_audit()

    def _read_audits_in_a_row(self) -> None:
        """Read while a rebuild switches from one edition to the next and deletes the old one."""
        for _ in range(MAX_AUDITS_IN_A_ROW):
            self._scheduler.switch("auditor", self._draw.uniform(0.0, 0.2))
            self.read_audit()
            if not self._rebuilds:
                return

    def _rebuild_twice(self) -> None:
        """Rebuild the rollups while another rebuild is under way."""
        for _ in range(self.cloud.habits.rebuilds):
            self._scheduler.switch("operator", self._draw.uniform(1, 30 / self.cloud.habits.rebuilds))
            self._begin("operator", self._rebuild, self._draw.uniform(0.0, 6.0))
            self._rebuild()

    def _rebuild(self) -> None:
        def rebuild(process: FunctionProcess) -> None:
            assert process.resources is not None
            rebuild_rollups(process.resources, TENANT)

        self._rebuilds += 1
        for _ in range(AUDITORS):
            self._begin("auditor", self._read_audits_in_a_row)
        try:
            self._try_to_rebuild(rebuild)
        finally:
            self._rebuilds -= 1

    def _try_to_rebuild(self, rebuild: Callable[[FunctionProcess], None]) -> None:
        for _ in range(3):
            try:
                self.cloud.call("rebuild", rebuild, 300.0)
            except Conflict:
                return
            except Exception:  # noqa: BLE001 (an operator runs the command again)
                self._scheduler.switch("operator", 5.0)
            else:
                return

    def _change_key(self) -> None:
        self._scheduler.switch("owner", self._draw.uniform(1, 15))
        self._ask("credentials", "PUT", f"credentials/{self.credential}", {"apiKey": "sk-ant-another-key"})
        for model in (self.model, "another-model"):
            self._ask("api", "PUT", "defaults/site", {"credentialId": self.credential, "modelId": model})
        self._ask("api", "DELETE", "defaults/site")

    def _rename(self) -> None:
        self._scheduler.switch("owner", self._draw.uniform(1, 15))
        if self._ask("api", "PUT", f"conversations/{self.conversation}", {"title": "Renamed"}).is_success:
            self.titles[self.conversation] = "Renamed"

    def _work_in_a_new_conversation(self) -> None:
        """Create conversations, prompt in the last one at once, and maybe delete it at some moment of the turn."""
        body = {"scope": "site", "credentialId": self.credential, "modelId": self.model}
        for _ in range(3):
            created = self._ask("api", "POST", "conversations", body, self.bob)
        if not created.is_success:
            return
        conversation = created.body["conversation"]["id"]
        self.conversations[conversation] = self.bob
        browser = self.make_prompt("b0", user=self.bob, conversation=conversation)
        self._begin("bob", browser.run)
        if self._draw.random() < DELETION_RATE:
            self._scheduler.switch("bob", self._draw.uniform(0.5, 20))
            if self._ask("api", "DELETE", f"conversations/{conversation}", None, self.bob).is_success:
                self.deleted.add(conversation)

    def _prompt_in_several_conversations(self) -> None:
        """Prompt at the same moment in conversations that share the workspace's budget."""
        body = {"scope": "site", "credentialId": self.credential, "modelId": self.model}
        self._scheduler.switch("user", self._draw.choice(RUSH_DELAYS_SECONDS))
        created = [(user, self._ask("api", "POST", "conversations", body, user)) for user in RUSHING_USERS]
        ids = [(user, answer.body["conversation"]["id"]) for user, answer in created if answer.is_success]
        for number, (user, conversation) in enumerate(ids):
            self.conversations[conversation] = user
            browser = self.make_prompt(f"c{number}", user=user, conversation=conversation, max_rounds=2)
            self._begin(user.name, browser.run)

    # afterwards

    def repeat_everything(self) -> None:
        """Send every prompt, undo and answer again. Nothing may happen anew."""
        served = len(self.cloud.provider.served)
        for browser in [browser for browser in self.browsers if browser.turn.bridge]:
            again = browser.send_start()
            if (again.status, (again.body or {}).get("bridgeId")) != (202, browser.turn.bridge):
                self.complaints.append(f"{browser.turn.name}: the same request again is answered {again}")
            for request_id, body in browser.answers.items():
                answer = browser.send_answer(body)
                if not answer.is_success:
                    self.complaints.append(f"the same answer to {request_id} is {answer.error}")
        if len(self.cloud.provider.served) != served:
            self.complaints.append("a repeated request led to another provider request")

    def purge(self) -> None:
        """Purge deleted conversations, until a purge is not disturbed."""
        for _ in range(4):
            try:
                self.cloud.call("purge", lambda process: purge_deleted_conversations(process.resources), 300.0)  # type: ignore[arg-type]
            except Exception:  # noqa: BLE001 (the next hour's purge tries again)
                self._scheduler.switch("schedule", 300.0)
            self._scheduler.switch("schedule", 300.0)

    def use_what_has_expired(self) -> None:
        """Undo turns and answer requests of which some rows may still be there. None of it may be accepted."""
        for browser in [browser for browser in self.browsers if browser.turn.bridge]:
            undo = self.cloud.request("stream", "POST", f"bridges/{browser.turn.bridge}/undo", self.ada.token, {})
            answers = [browser.send_answer(body) for body in browser.answers.values()]
            for answer in (undo, *answers):
                if answer.status not in (404, 409):
                    self.complaints.append(f"{browser.turn.name} has expired, and a request to it is answered {answer}")

    def prompt_once_more(self, provider_credential: str, model: str, name: str = "last") -> None:
        """Prompt in each conversation that is left, with another provider; it has to succeed."""
        for number, (conversation, user) in enumerate(self.conversations.items()):
            if conversation in self.deleted:
                continue
            body = {"credentialId": provider_credential, "modelId": model}
            self.cloud.request("api", "PUT", f"conversations/{conversation}", user.token, body)
            browser = self.make_prompt(f"{name}{number}", user=user, conversation=conversation, max_rounds=1)
            browser.turn.must_succeed = True
            browser.run()
