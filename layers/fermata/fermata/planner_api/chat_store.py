"""Store the chats of a session between their two requests: the start, and the stream that runs them (decision 0341).

    t#<tenant>#u#<user>#plan-chats    <conversation>.<nonce>    the body, until it is run; then its turn or its answer

A start is good for a minute, a run for fifteen. Rows expire with the run.
"""

import base64
import json
import zlib
from typing import Any, Literal

from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, Update
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import PayloadTooLarge, TooManyRequests
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.turn import load_turn
from fermata.turns.turn_log import read_end_type

CHAT_START_SECONDS = 60
CHAT_SECONDS = 15 * 60
MAX_OPEN_CHATS = 3
MAX_CHAT_BYTES = 512 * 1024
MAX_STORED_CHARS = 350_000
TOO_MANY_CHATS = "Too many pending streams for this session"

ChatState = Literal["pending", "active", "answered", "cancelled"]


@value_dataclass(frozen=True)
class ChatRun:
    """A chat that was started. `turn` is there once it runs, `answer` if it needed none."""

    id: str
    state: ChatState
    body: dict[str, Any]
    origin: str
    at: float
    turn: str = ""
    answer: dict[str, Any] | None = None

    @property
    def conversation(self) -> str:
        """The conversation of its session."""
        return self.id.rpartition(".")[0]

    def is_startable(self, now: float) -> bool:
        """Return whether its stream may still begin."""
        return self.state == "pending" and now - self.at <= CHAT_START_SECONDS


def chats_partition(tenant: str, user: str) -> str:
    """Return the partition of a user's chats."""
    return f"t#{tenant}#u#{user}#plan-chats"


def store_chat(resources: Resources, caller: Caller, conversation: str, body: dict[str, Any], origin: str) -> ChatRun:
    """Store a chat that is to be run, unless too many of its session are open.

    Args:
        conversation: Of the session.
        body: The request, as JSON.
        origin: Of the page that sends it.

    Raises:
        TooManyRequests: As many chats of the session are pending or running as may be.
        PayloadTooLarge: The body cannot be stored.
    """
    _require_room(resources, caller, conversation)
    packed = base64.b64encode(zlib.compress(json.dumps(body).encode())).decode()
    if len(packed) > MAX_STORED_CHARS:
        raise PayloadTooLarge("Request body too large")
    now = int(resources.clock.time())
    chat = ChatRun(f"{conversation}.{new_id(16)}", "pending", body, origin, now)
    item: Item = {
        "pk": chats_partition(caller.tenant, caller.user),
        "sk": chat.id,
        "v": 1,
        "state": chat.state,
        "body": packed,
        "origin": origin,
        "at": now,
        "ttl": now + CHAT_SECONDS,
    }
    resources.tables.write_items(Put(resources.settings.bridges_table, item, if_absent=True))
    return chat


def _require_room(resources: Resources, caller: Caller, conversation: str) -> None:
    chats = list_chats(resources, caller, conversation)
    now = resources.clock.time()
    pending = [chat for chat in chats if chat.is_startable(now)]
    active = [chat for chat in chats if chat.state == "active"]
    if len(pending) + len(active) < MAX_OPEN_CHATS:
        return
    running = [chat for chat in active if not is_chat_over(resources, caller, chat)]
    if len(pending) + len(running) >= MAX_OPEN_CHATS:
        raise TooManyRequests(TOO_MANY_CHATS, retry_after=5)


def is_chat_over(resources: Resources, caller: Caller, chat: ChatRun) -> bool:
    """Return whether nothing of a chat runs any more."""
    if chat.state != "active":
        return chat.state != "pending"
    turn = load_turn(resources, caller.tenant, chat.turn)
    return turn is None or read_end_type(resources, turn) is not None


def list_chats(resources: Resources, caller: Caller, conversation: str) -> list[ChatRun]:
    """Return the chats of a session that have not expired, in no order."""
    pk = chats_partition(caller.tenant, caller.user)
    items = resources.tables.query_items(
        resources.settings.bridges_table, pk, min_sk=f"{conversation}.", max_sk=f"{conversation}.~"
    )
    return [chat_from_item(item) for item in items if item["ttl"] > resources.clock.time()]


def load_chat(resources: Resources, caller: Caller, stream_id: str) -> ChatRun | None:
    """Return a caller's own chat, or None if there is none or it has expired."""
    conversation, _, nonce = stream_id.rpartition(".")
    if not (is_valid_id(conversation) and is_valid_id(nonce)):
        return None
    pk = chats_partition(caller.tenant, caller.user)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, stream_id)
    return chat_from_item(item) if item and item["ttl"] > resources.clock.time() else None


def chat_from_item(item: Item) -> ChatRun:
    """Parse the row of a chat."""
    body = json.loads(zlib.decompress(base64.b64decode(item["body"])))
    answer = json.loads(item["answer"]) if "answer" in item else None
    return ChatRun(item["sk"], item["state"], body, item["origin"], float(item["at"]), item.get("turn", ""), answer)


def settle_chat(
    resources: Resources, caller: Caller, chat: ChatRun, state: ChatState, *, turn: str = "", answer: str = ""
) -> bool:
    """Say what has become of a pending chat. Returns False if another request was faster.

    Args:
        turn: The turn that runs it.
        answer: What it was answered without a turn, as JSON.
    """
    values: Item = {":state": state, ":pending": "pending", ":turn": turn}
    update = Update(
        resources.settings.bridges_table,
        chats_partition(caller.tenant, caller.user),
        chat.id,
        "SET #state = :state, turn = :turn" + (", answer = :answer" if answer else ""),
        values | ({":answer": answer} if answer else {}),
        names={"#state": "state"},
        condition="#state = :pending",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        return False
    return True
