"""A round's calls and what has become of them: one item per round, changed only on the version that was read."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from fermata.aws import blobs
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Item, Put
from fermata.turns.log import Moved
from fermata.turns.turn import Place, Turn
from fermata.words.base import Word
from fermata.words.tools import ToolOutput

State = Literal["waiting", "requested", "started", "answered", "expired"]
Runner = Literal["browser", "server", "settled"]
"""Who answers a call: the browser, our own function, or nobody any more (its output was known at once)."""


class Call(Word):
    """One call of a round, its validated input ready to be sent out."""

    tool_call_id: str
    tool_name: str
    runner: Runner
    mutates: bool
    effect_key: str
    wait_seconds: float
    input: Any = None
    output: ToolOutput | None = None
    """Known beforehand (refused, malformed, truncated): given when its turn comes."""
    state: State = "waiting"
    request_id: str = ""
    deadline: float = 0
    answer_hash: str = ""
    revision: str = ""
    """What the document was at, as far as the request knew."""
    summary: str = ""
    """The beginning of the input, once that is in the log only."""

    @property
    def is_done(self) -> bool:
        return self.state in ("answered", "expired")


class TakenBack(Word):
    """The edit whose inverse a round asks for. `first`: how many of its calls earlier undos have seen done; `of`: how
    many there are.
    """

    turn: str
    edit: str
    effect_key: str
    first: int
    of: int


class Pause(Word):
    """`entry` and `standing` belong to the log entry that was written together with the last change of a call:
    whoever answers appends behind it without reading the log first.
    """

    turn: str
    tenant: str
    user: str
    scope: str
    conversation: str
    round: int
    version: int
    calls: tuple[Call, ...]
    planned: str = ""
    """The document's revision these calls were planned on, moved on by what they themselves have changed."""
    takes_back: TakenBack | None = None
    token: str = ""
    epoch: str = ""
    """The attempt that waits with `token`: an older one never puts its own in that place."""
    held: bool = False
    """The token is Hold's, whose only clock is its end: whatever comes next, the round is woken to time it anew."""
    entry: int = 0
    next: int = 0
    standing: dict[str, Any] = Field(default_factory=dict)
    expires: int = 0

    @property
    def place(self) -> Place:
        return Place(self.tenant, self.turn, self.expires)

    @property
    def hint(self) -> dict[str, int]:
        """Where whoever is woken may begin to read."""
        return {"round": self.round, "entry": self.entry, "next": self.next}

    @property
    def open_request(self) -> Call | None:
        """The call the browser is asked for now."""
        return next((call for call in self.calls if call.state == "requested"), None)

    @property
    def next_call(self) -> Call | None:
        """The first call that is not done, in the model's order."""
        return next((call for call in self.calls if not call.is_done), None)

    @property
    def is_answered(self) -> bool:
        return all(call.is_done for call in self.calls)

    def call(self, request_id: str) -> Call | None:
        return next((call for call in self.calls if call.request_id == request_id), None)

    def edited(self, call: Call, output: ToolOutput, revision: str) -> "Pause":
        """What was just done moves on what its next calls are planned on; what somebody else did does not."""
        if not (revision and call.mutates) or output.conflict:
            return self
        return self.model_copy(update={"planned": revision})

    def waited_for(self, token: str, epoch: str, *, held: bool = False) -> "Pause":
        """The pause in the hands of whoever waits with this token."""
        return self.model_copy(update={"token": token, "epoch": epoch, "held": held})

    def with_call(self, changed: Call) -> "Pause":
        """The pause with the call of the same effect key replaced."""
        calls = tuple(changed if call.effect_key == changed.effect_key else call for call in self.calls)
        return self.model_copy(update={"calls": calls})


def sk(round_: int) -> str:
    return f"p#{round_:06d}"


def request_id(round_: int, index: int, nonce: str) -> str:
    """Carries its round, so that an answer finds its pause with one read."""
    return f"{round_}.{index}.{nonce}"


def round_of(request: str) -> int | None:
    head, _, _ = request.partition(".")
    return int(head) if head.isdecimal() and len(head) <= 6 else None


def answer_hash(result: Any) -> str:
    canonical = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def put(desk: Desk, pause: Pause, *, was: int) -> Put:
    """The write that stores `pause` where version `was` stands (0: nothing yet)."""
    item = _item(desk, pause)
    table = desk.settings.bridges_table
    if not was:
        return Put(table, item, absent=True)
    return Put(table, item, condition="#version = :was", values={":was": was}, names={"#version": "version"})


def replace(desk: Desk, pause: Pause) -> None:
    """Store the next version alone; raises Moved when the one before it is gone."""
    try:
        desk.tables.write(put(desk, pause, was=pause.version - 1))
    except ConditionFailed as refused:
        raise Moved from refused


def _item(desk: Desk, pause: Pause) -> Item:
    data = pause.model_dump(mode="json", exclude={"version", "calls", "tenant", "turn"}, exclude_defaults=True)
    calls = [call.model_dump(mode="json", exclude_defaults=True) for call in pause.calls]
    item: Item = {
        "pk": pause.place.pk,
        "sk": sk(pause.round),
        "v": 1,
        "turn": pause.turn,
        "tenant": pause.tenant,
        "version": pause.version,
        "data": json.dumps(data, separators=(",", ":")),
        "ttl": pause.expires,
    }
    text = json.dumps(calls, separators=(",", ":"))
    if len(text) <= blobs.LARGE:
        return item | {"calls": text}
    return item | {"blob": desk.blobs.put(blobs.turn_folder(pause.tenant, pause.turn), calls)}


def read(desk: Desk, item: Item) -> Pause:
    calls = desk.blobs.get(item["blob"]) if "blob" in item else json.loads(item["calls"])
    data = json.loads(item["data"])
    return Pause.model_validate(
        {**data, "turn": item["turn"], "tenant": item["tenant"], "version": item["version"], "calls": calls}
    )


def load(desk: Desk, turn: Turn, round_: int) -> Pause | None:
    item = desk.tables.get(desk.settings.bridges_table, turn.pk, sk(round_))
    return read(desk, item) if item else None


def fresh(
    turn: Turn, round_: int, calls: Sequence[Call], planned: str = "", takes_back: TakenBack | None = None
) -> Pause:
    """A pause that is not stored yet."""
    return Pause(
        turn=turn.id,
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        round=round_,
        version=0,
        calls=tuple(calls),
        planned=planned,
        takes_back=takes_back,
        expires=turn.expires,
    )
