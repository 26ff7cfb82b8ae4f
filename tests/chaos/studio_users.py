"""Users of the studio, and programs with keys, who share what the plan of their workspace includes in a month."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space
from fermata.credentials.scope_defaults import set_default
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.workspace_plan import Subscription
from fermata.wire.auth.conversation_key_store import create_conversation_key
from fermata.wire.auth.tenant_store import update_tenant
from tests.chaos.account_recorder import to_plain_row
from tests.chaos.provider import make_prompt
from tests.chaos.simulated_cloud import HttpAnswer
from tests.chaos.users import TENANT, User
from tests.chaos.world_extension import WorldExtension

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions

PROJECT = "studio"
CHAT_PATH = f"/api/workspaces/{TENANT}/projects/{PROJECT}/chat"
KEY_PATH = f"/api/conversation/v1/{PROJECT}/message"
MONTH_LIMITS = {"chatMessages": 5, "apiMessages": 4}
"""Fewer than the users and the programs want to send, so that several meet the limit at once."""
KEY_LIMITS = (3, 1000)
"""Of each key in a month."""
STUDIO_USERS = ("ada", "ada", "bob")
MESSAGES_EACH = 3
PAUSE_SECONDS = 6.0
DELAYS_SECONDS = (0.0, 0.0, 0.05, 2.0)
"""Most are sent at the same moment, so that the last one of a month is sent several times at once."""
REPEAT_RATE = 0.5
DOUBLE_CLICK_RATE = 0.4
MAX_ATTEMPTS = 20
LIMIT_CODE = "planLimitReached"


@dataclass
class SentMessage:
    """One message, under one Idempotency-Key, and how its requests were answered.

    Attributes:
        name: The message says it, and no other one does.
        meter: What it counts as.
        limit: How many messages the month may have for it, at most.
        statuses: Of each answer.
        is_refused: Whether an answer said that the month is used.
    """

    name: str
    meter: str
    path: str
    token: str
    statuses: list[int] = field(default_factory=list)
    is_refused: bool = False
    error: str = ""
    """Of the last answer."""

    @property
    def is_accepted(self) -> bool:
        return 200 in self.statuses


class StudioUsers(WorldExtension):
    """Tabs and programs that send messages at the same time, twice at once, and again later."""

    scope = "studio"
    task_name = "studio"
    sent: list[SentMessage]
    key_limits: dict[str, int]
    """How many messages a month each key may send, by the name under which it acts."""

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        ada = User("ada").caller
        space = SpaceKey(TENANT, PROJECT)
        create_space(resources, space, ContentSpace(locales=("en",)), ContentAuthor("ada", "import"))
        set_default(resources, ada, "studio", credential, model)
        update_tenant(resources, TENANT, subscription=Subscription(plan="pro", limits=MONTH_LIMITS))
        self.key_limits, self._keys = dict[str, int](), list[str]()
        for limit in KEY_LIMITS:
            rules = ConversationKeyRules(project=space.name, messages_per_month=limit)
            key, text = create_conversation_key(resources, ada, "Robot", rules)
            self.key_limits[key.to_caller().user] = limit
            self._keys.append(text)

    def start(self, actions: "UserActions") -> None:
        self.sent = []
        self._numbers: Iterator[int] = itertools.count()
        senders = [(CHAT_PATH, User(name).token, "chatMessages") for name in STUDIO_USERS]
        senders += [(KEY_PATH, key, "apiMessages") for key in self._keys]
        for path, token, meter in senders:
            self._begin(partial(self._work, path, token, meter))

    @property
    def owners(self) -> dict[str, str]:
        rows = [to_plain_row(item) for item in self.world.cloud.dynamodb.tables["conversations"].items.values()]
        return {row["id"]: row["user"] for row in rows if row["sk"] == "meta" and row["scope"] == self.scope}

    def _work(self, path: str, token: str, meter: str) -> None:
        scheduler = self.world.scheduler
        draw = scheduler.random
        for _ in range(MESSAGES_EACH):
            scheduler.switch("studio", PAUSE_SECONDS - scheduler.now % PAUSE_SECONDS + draw.choice(DELAYS_SECONDS))
            message = SentMessage(f"s{next(self._numbers)}", meter, path, token)
            self.sent.append(message)
            if draw.random() < DOUBLE_CLICK_RATE:
                self._begin(partial(self._send, message))
            self._send(message)
            if draw.random() < REPEAT_RATE:
                scheduler.switch("studio", draw.uniform(0.0, 60.0))
                self._send(message)

    def _send(self, message: SentMessage) -> None:
        """Send a message until it is answered, or refused because the month is used."""
        body = {"message": make_prompt(message.name, 1, self.world.seed)}
        for _ in range(MAX_ATTEMPTS):
            answer = self.world.cloud.request(
                "stream", "POST", message.path, message.token, body, idempotency_key=f"key-{message.name}"
            )
            message.statuses.append(answer.status)
            message.error = answer.error
            if _is_of_used_month(answer):
                message.is_refused = True
            if answer.is_success or answer.is_final or _is_of_used_month(answer):
                return
            self.world.scheduler.switch("studio", 3.0)


def _is_of_used_month(answer: HttpAnswer) -> bool:
    return isinstance(answer.body, dict) and answer.body.get("code") == LIMIT_CODE
