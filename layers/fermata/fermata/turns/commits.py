"""ROUND and ANSWER: what a model said and what its calls came to, each told and stored as one truth (design §4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import TransactionRefused, Write
from fermata.conversations import rows
from fermata.turns import pause as pauses
from fermata.turns.accounting import charge
from fermata.turns.log import Entry, Log, Moved, telling
from fermata.turns.pause import Call, Pause, TakenBack
from fermata.turns.progress import Progress
from fermata.turns.standing import Standing
from fermata.usage.booking import book
from fermata.usage.ledger import Spent
from fermata.words.blocks import Block, ImageBlock, ToolResultBlock
from fermata.words.events import Event
from fermata.words.messages import Message, Role
from fermata.words.tools import ToolOutput


class PauseChanged(Moved):
    """The pause is no longer the version that was read."""


def nothing_else(_made: Entry) -> Sequence[Write]:
    return ()


@dataclass(frozen=True)
class Commit:
    """One transaction. Order on the stream: `events`, then what `progress` tells, then `then`."""

    tenant: str
    conversation: str
    turn: str
    round: int
    progress: Progress | None = None
    events: tuple[Event, ...] = ()
    then: tuple[Event, ...] = ()
    reply: tuple[Block, ...] = ()
    spent: tuple[Spent, ...] = ()
    snapshot: str = ""
    revision: str = ""
    """What the document is at now; empty when nobody said."""
    kept: Callable[[Entry], Sequence[Write]] = nothing_else
    """What else becomes true with it, given the log entry."""
    ready: bool = False
    """The next round may begin although no call was made (the provider paused itself)."""

    @classmethod
    def of(cls, pause: Pause, **parts: Any) -> "Commit":
        return cls(pause.tenant, pause.conversation, pause.turn, pause.round, **parts)

    @property
    def taken_back(self) -> TakenBack | None:
        return self.progress.pause.takes_back if self.progress else None

    @property
    def outputs(self) -> tuple[tuple[Call, ToolOutput], ...]:
        return self.progress.outputs if self.progress else ()

    @property
    def told(self) -> tuple[Event, ...]:
        return (*self.events, *(self.progress.events if self.progress else ()), *self.then)


@dataclass(frozen=True)
class Committed:
    entry: Entry
    pause: Pause | None
    messages: tuple[Message, ...]


def write(desk: Desk, log: Log, commit: Commit) -> Committed:
    """Raises PauseChanged when somebody else changed the pause first, and what Log.append raises."""
    messages = _messages(desk, commit)
    taken = sum(map(rows.width, messages))

    def along(made: Entry, before: Standing) -> Sequence[Write]:
        placed = _from(before.position, messages)
        kept = [rows.put(desk, commit.tenant, commit.conversation, message) for message in placed]
        return (*_pause_write(desk, commit, made), *kept, *book(desk, commit.spent), *commit.kept(made))

    def changes(before: Standing) -> Mapping[str, Any]:
        return _changes(desk, commit, before) | {"position": before.position + taken}

    try:
        entry = log.append(telling(*commit.told), along, changes=changes)
    except TransactionRefused as refused:
        raise PauseChanged from refused
    stored = _placed(commit.progress.pause, entry) if commit.progress else None
    return Committed(entry, stored, _from(entry.standing.position - taken, messages))


def _changes(desk: Desk, commit: Commit, before: Standing) -> dict[str, Any]:
    until = commit.progress.until if commit.progress else 0
    is_long = until - desk.clock.time() > desk.settings.heartbeat_seconds
    changes: dict[str, Any] = {
        "snapshot": commit.snapshot or before.snapshot,
        "revision": commit.revision or before.revision,
        "until": int(until) if is_long else 0,
    }
    if commit.spent:
        changes |= charge(before, commit.spent)
    if taken := commit.taken_back:
        changes["edit"] = taken.edit
    return changes | ({"phase": "ready"} if commit.ready else {})


def _pause_write(desk: Desk, commit: Commit, made: Entry) -> tuple[Write, ...]:
    """A pause whose calls were all answered before it was ever stored is nobody's to read."""
    if commit.progress is None:
        return ()
    pause, was = _placed(commit.progress.pause, made), commit.progress.pause.version - 1
    return () if pause.is_answered and not was else (pauses.put(desk, pause, was=was),)


def _placed(pause: Pause, made: Entry) -> Pause:
    """The pause as it is stored together with a log entry."""
    return pause.model_copy(update={"entry": made.first, "next": made.next, "standing": made.standing.to_item()})


def _messages(desk: Desk, commit: Commit) -> list[Message]:
    """The reply, then every result, each at its own position from 0 on. What an undo does is told at its end."""
    messages: list[Message] = []
    if commit.taken_back:
        return messages
    if commit.reply:
        messages.append(_message(desk, commit, 0, "assistant", commit.reply))
    for call, output in commit.outputs:
        after = sum(map(rows.width, messages))
        messages.append(_message(desk, commit, after, "tool", (_result(output),), call))
    return messages


def _from(position: int, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages where they are stored, behind everything that was there before."""
    return tuple(message.model_copy(update={"position": position + message.position}) for message in messages)


def _message(
    desk: Desk, commit: Commit, position: int, role: Role, content: tuple[Block, ...], call: Call | None = None
) -> Message:
    return Message(
        position=position,
        role=role,
        content=content,
        turn=commit.turn,
        round=commit.round,
        tool_call_id=call.tool_call_id if call else None,
        tool_name=call.tool_name if call else None,
        created_at=desk.clock.instant(),
    )


def _result(output: ToolOutput) -> ToolResultBlock:
    images = tuple(ImageBlock(mime_type=image.mime_type, data=image.data) for image in output.images or ())
    return ToolResultBlock(ok=output.ok, error=output.error, data=output.data, images=images or None)
