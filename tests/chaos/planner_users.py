"""Users of a planner's session: tabs that ask for plans and decide about them, at the same time as an approver."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fermata.aws.resources import Resources
from fermata.credentials.scope_defaults import set_default
from fermata.planner_api.sessions import open_session
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.page_model import Page
from tests.chaos.browser import Browser
from tests.chaos.evidence import ClientTurn
from tests.chaos.provider import make_prompt
from tests.chaos.simulated_cloud import HttpAnswer
from tests.chaos.users import User
from tests.chaos.world_extension import WorldExtension

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions

SESSION = "s"
BLOCK = "b_hero"
HELD_PAGES = ("/a", "/b")
"""A plan that changes both is held."""
FREE_PAGE = "/"
FREE_RATE = 0.25
"""How many plans change one page only, and are applied at once."""
PLANS = 3
EDIT_RATE = 0.3
EDIT_DELAYS_SECONDS = (0.0, 8.0)
"""How long after a plan is seen that waits somebody changes what it changes, without a model."""
LOOK_SECONDS = (1.0, 15.0)
TABS = 2
DECISION_RATES = (5, 2, 3)
"""To apply a plan that is seen, to drop it, and to leave it for the next look."""
OTHER_OPERATIONS_RATE = 0.2
REPEAT_RATE = 0.4
EXPIRY_EVERY = 3
"""In one seed of so many nobody decides about the last plan until its hour is over."""
PLAN_SECONDS = 3600.0
LAST_LOOKS = 20


@dataclass(frozen=True)
class PlanDecision:
    """What somebody has sent about a plan, and how the service has answered.

    Attributes:
        heading: What the operations say that were sent in place of the plan's; empty for those of the plan.
        outcome: `applied`, `dropped`, `absent` if there was nothing to drop, or `refused`; empty if nobody knows.
    """

    plan: str
    user: str
    is_agreed: bool
    heading: str
    status: int
    outcome: str
    at: float


class PlannerUsers(WorldExtension):
    """Two tabs of the user whose session it is, an editor without a model, and somebody who may approve."""

    scope = "planner"
    task_name = "planner"
    patience_seconds = PLAN_SECONDS + 900.0

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        ada = User("ada").caller
        set_default(resources, ada, self.scope, credential, model)
        location = open_session(resources, ada, SESSION, None)
        self.conversation = location.conversation
        import_pages(resources, location, tuple(map(_make_page, (FREE_PAGE, *HELD_PAGES))), overwrite=False)

    def start(self, actions: "UserActions") -> None:
        self.decisions: list[PlanDecision] = []
        self.plans: list[str] = []
        """What each plan says, which is its summary too."""
        self.edits: dict[str, str] = {}
        """What each edit says that was answered with success, by its Idempotency-Key."""
        self._actions = actions
        self._numbers: Iterator[int] = itertools.count()
        self._planning = self._begin(self._ask_for_plans)
        for _ in range(TABS):
            self._begin(partial(self._decide_in_session, User("ada")))
        self._begin(partial(self._decide_about_approvals, User("grace")))
        self._begin(self._edit)

    @property
    def owners(self) -> dict[str, str]:
        return {self.conversation: "ada"}

    # plans

    def _ask_for_plans(self) -> None:
        scheduler = self.world.scheduler
        for number in range(PLANS):
            name = f"p{number}"
            self.plans.append(name)
            is_free = scheduler.random.random() < FREE_RATE and not self._is_left_to_expire
            pages = (FREE_PAGE,) if is_free else HELD_PAGES
            plan = {"intent": "edit_plan", "summary_for_user": name, "ops": make_operations(name, pages)}
            self.world.cloud.provider.planned_calls[name] = [("submit_edit_plan", plan)]
            content = [{"kind": "text", "text": make_prompt(name, 2, self.world.seed)}]
            body = {"conversationId": self.conversation, "content": content}
            turn = ClientTurn(name, "prompt", self.conversation, dialect=self.world.dialect)
            browser = Browser(self.world.cloud, self.world.page, User("ada"), turn, body, f"chat/{self.scope}")
            self._actions.browsers.append(browser)
            browser.run()
            scheduler.switch("planner", scheduler.random.uniform(0.0, 30.0))

    def _edit(self) -> None:
        """Change a page by operations while plans wait that change it too."""
        scheduler = self.world.scheduler
        while not self._planning.is_over:
            scheduler.switch("planner", scheduler.random.uniform(*LOOK_SECONDS) / 2)
            is_wanted = scheduler.random.random() < EDIT_RATE and not self._is_left_to_expire
            if is_wanted and self._list_plans(User("ada")):
                scheduler.switch("planner", scheduler.random.choice(EDIT_DELAYS_SECONDS))
                self._send_edit(f"e{next(self._numbers)}")

    def _send_edit(self, name: str) -> None:
        """Send an edit until it is answered, and maybe once more under its key."""
        scheduler = self.world.scheduler
        body = {"session": SESSION, "ops": make_operations(name, HELD_PAGES[:1])}
        for _ in range(8):
            answer = self._request("api", "POST", "planner/ops", body, idempotency_key=name)
            if answer.is_success:
                self.edits[name] = name
            if answer.is_success and scheduler.random.random() >= REPEAT_RATE:
                return
            scheduler.switch("planner", 2.0)

    # decisions

    @property
    def _lets_the_last_expire(self) -> bool:
        return self.world.seed % EXPIRY_EVERY == 1

    @property
    def _is_left_to_expire(self) -> bool:
        """Whether the last plan is made now, and nobody decides about it."""
        return self._lets_the_last_expire and len(self.plans) == PLANS

    def _look_often(self) -> Iterator[None]:
        """Yield until plans are made and looked at. Then, in some seeds, wait until the last one has expired."""
        scheduler = self.world.scheduler
        looks = 0
        while not self._planning.is_over or looks < LAST_LOOKS:
            scheduler.switch("planner", scheduler.random.uniform(*LOOK_SECONDS))
            looks += self._planning.is_over
            if not self._is_left_to_expire:
                yield
            elif self._planning.is_over:
                break
        if self._lets_the_last_expire:
            seen = self._list_plans(User("ada"))
            scheduler.switch("planner", PLAN_SECONDS + 60.0)
            for plan in seen:
                self._send_in_session(User("ada"), plan, is_agreed=True)

    def _list_plans(self, user: User) -> list[str]:
        answer = self.world.cloud.request("api", "GET", f"planner/plans?session={SESSION}", user.token)
        return [plan["pendingPlanId"] for plan in answer.body["plans"]] if answer.is_success else []

    def _decide_in_session(self, user: User) -> None:
        for _ in self._look_often():
            for plan in self._list_plans(user):
                choice = self._choose()
                if choice is not None:
                    self._send_in_session(user, plan, is_agreed=choice)

    def _choose(self) -> bool | None:
        (choice,) = self.world.scheduler.random.choices((True, False, None), DECISION_RATES)
        return choice

    def _send_in_session(self, user: User, plan: str, *, is_agreed: bool) -> None:
        mode = "apply_pending_plan" if is_agreed else "discard_pending_plan"
        body = {"session": SESSION, "executionMode": mode, "pendingPlanId": plan}
        for _ in range(6):
            answer = self._request("stream", "POST", "planner/chat", body, user=user)
            outcome = _read_outcome(answer)
            self._note(plan, user, is_agreed, "", answer.status, outcome)
            is_repeated = outcome and self.world.scheduler.random.random() < REPEAT_RATE
            if outcome and not is_repeated:
                return
            self.world.scheduler.switch("planner", self.world.scheduler.random.uniform(0.0, 3.0))

    def _decide_about_approvals(self, user: User) -> None:
        for _ in self._look_often():
            listed = self.world.cloud.request("tool_result", "GET", "approvals", user.token)
            for approval in listed.body["approvals"] if listed.is_success else ():
                choice = self._choose()
                if choice is not None:
                    self._send_decision(user, approval["approvalId"], is_agreed=choice)

    def _send_decision(self, user: User, approval: str, *, is_agreed: bool) -> None:
        draw = self.world.scheduler.random
        plan = approval.rpartition(".")[2]
        heading = f"o{next(self._numbers)}" if is_agreed and draw.random() < OTHER_OPERATIONS_RATE else ""
        body: dict[str, Any] = {"approved": is_agreed, "reason": "seen"}
        body |= {"input": {"ops": make_operations(heading, HELD_PAGES)}} if heading else {}
        for _ in range(6):
            answer = self._request("tool_result", "POST", f"approvals/{approval}", body, user=user)
            accepted = "applied" if is_agreed else "dropped"
            outcome = accepted if answer.is_success else "refused" if 400 <= answer.status < 500 else ""
            self._note(plan, user, is_agreed, heading, answer.status, outcome)
            if outcome and draw.random() >= REPEAT_RATE:
                return
            self.world.scheduler.switch("planner", draw.uniform(0.0, 3.0))

    def _note(self, plan: str, user: User, is_agreed: bool, heading: str, status: int, outcome: str) -> None:
        now = self.world.scheduler.now
        self.decisions.append(PlanDecision(plan, user.name, is_agreed, heading, status, outcome, now))

    def _request(
        self, function: str, method: str, path: str, body: Any, user: User | None = None, **headers: str
    ) -> HttpAnswer:
        return self.world.cloud.request(function, method, path, (user or User("ada")).token, body, **headers)


def _make_page(slug: str) -> Page:
    block = {"id": BLOCK, "type": "Hero", "props": {"heading": "start"}}
    return Page.from_wire({"id": f"page{slug}", "slug": slug, "title": "Page", "blocks": [block]})


def make_operations(heading: str, pages: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"op": "update_props", "pageSlug": page, "blockId": BLOCK, "patch": {"heading": heading}} for page in pages]


def _read_outcome(answer: HttpAnswer) -> str:
    if answer.status in (409, 403):
        return "refused"
    if not answer.is_success:
        return ""
    if answer.body["status"] == "applied":
        return "applied"
    return "absent" if "no plan" in answer.body["summary"] else "dropped"
