"""ROUND and ANSWER: what a model said and what its calls came to, each told and stored as one truth (design §4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws.dynamodb import TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.domain.blocks import Block, ImageBlock, ToolResultBlock
from fermata.domain.events import Event
from fermata.domain.messages import Message, Role
from fermata.domain.tools import ToolOutput
from fermata.turns.accounting import add_usage
from fermata.turns.pause import Pause, RoundCall, UndoTarget, build_pause_put
from fermata.turns.state import TurnState
from fermata.turns.transitions import Transition
from fermata.turns.turn_log import LogEntry, StaleState, TurnLog, fixed_events
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.settlement import build_request_writes


class PauseChanged(StaleState):
    """The pause is no longer the version that was read."""


def no_extra_writes(_made: LogEntry) -> Sequence[Write]:
    return ()


@dataclass(frozen=True)
class RoundCommit:
    """One transaction. Order on the stream: `events`, then what `progress` tells, then `then`."""

    tenant: str
    conversation: str
    turn: str
    round: int
    progress: Transition | None = None
    events: tuple[Event, ...] = ()
    then: tuple[Event, ...] = ()
    reply: tuple[Block, ...] = ()
    spent: tuple[RequestUsage, ...] = ()
    snapshot: str = ""
    revision: str = ""
    """What the document is at now; empty when nobody said."""
    kept: Callable[[LogEntry], Sequence[Write]] = no_extra_writes
    """What else becomes true with it, given the log entry."""
    ready: bool = False
    """The next round may begin although no call was made (the provider paused itself)."""

    @classmethod
    def for_pause(cls, pause: Pause, **parts: Any) -> "RoundCommit":
        return cls(pause.tenant, pause.conversation, pause.turn, pause.round, **parts)

    @property
    def undo_target(self) -> UndoTarget | None:
        return self.progress.pause.takes_back if self.progress else None

    @property
    def outputs(self) -> tuple[tuple[RoundCall, ToolOutput], ...]:
        return self.progress.outputs if self.progress else ()

    @property
    def all_events(self) -> tuple[Event, ...]:
        return (*self.events, *(self.progress.events if self.progress else ()), *self.then)


@dataclass(frozen=True)
class CommitResult:
    entry: LogEntry
    pause: Pause | None
    messages: tuple[Message, ...]


def write_round_commit(resources: Resources, log: TurnLog, commit: RoundCommit) -> CommitResult:
    """Raises PauseChanged when somebody else changed the pause first, and what Log.append raises."""
    messages = _messages(resources, commit)
    taken = sum(map(message_store.count_positions, messages))

    def along(made: LogEntry, before: TurnState) -> Sequence[Write]:
        placed = _from(before.position, messages)
        kept = [
            message_store.build_message_put(resources, commit.tenant, commit.conversation, message)
            for message in placed
        ]
        return (
            *_pause_write(resources, commit, made),
            *kept,
            *build_request_writes(resources, commit.spent),
            *commit.kept(made),
        )

    def changes(before: TurnState) -> Mapping[str, Any]:
        return _changes(resources, commit, before) | {"position": before.position + taken}

    try:
        entry = log.append(fixed_events(*commit.all_events), along, build_state_changes=changes)
    except TransactionCanceled as refused:
        raise PauseChanged from refused
    stored = _placed(commit.progress.pause, entry) if commit.progress else None
    return CommitResult(entry, stored, _from(entry.state.position - taken, messages))


def _changes(resources: Resources, commit: RoundCommit, before: TurnState) -> dict[str, Any]:
    until = commit.progress.deadline if commit.progress else 0
    is_long = until - resources.clock.time() > resources.settings.heartbeat_seconds
    changes: dict[str, Any] = {
        "snapshot": commit.snapshot or before.snapshot,
        "revision": commit.revision or before.revision,
        "until": int(until) if is_long else 0,
    }
    if commit.spent:
        changes |= add_usage(before, commit.spent)
    if taken := commit.undo_target:
        changes["edit"] = taken.edit
    return changes | ({"phase": "ready"} if commit.ready else {})


def _pause_write(resources: Resources, commit: RoundCommit, made: LogEntry) -> tuple[Write, ...]:
    """A pause whose calls were all answered before it was ever stored is nobody's to read."""
    if commit.progress is None:
        return ()
    pause, was = _placed(commit.progress.pause, made), commit.progress.pause.version - 1
    return () if pause.is_answered and not was else (build_pause_put(resources, pause, expected_version=was),)


def _placed(pause: Pause, made: LogEntry) -> Pause:
    """The pause as it is stored together with a log entry."""
    return pause.model_copy(
        update={"entry": made.first_number, "next": made.next_number, "standing": made.state.to_item()}
    )


def _messages(resources: Resources, commit: RoundCommit) -> list[Message]:
    """The reply, then every result, each at its own position from 0 on. What an undo does is told at its end."""
    messages: list[Message] = []
    if commit.undo_target:
        return messages
    if commit.reply:
        messages.append(_message(resources, commit, 0, "assistant", commit.reply))
    for call, output in commit.outputs:
        after = sum(map(message_store.count_positions, messages))
        messages.append(_message(resources, commit, after, "tool", (_result(output),), call))
    return messages


def _from(position: int, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages where they are stored, behind everything that was there before."""
    return tuple(message.model_copy(update={"position": position + message.position}) for message in messages)


def _message(
    resources: Resources,
    commit: RoundCommit,
    position: int,
    role: Role,
    content: tuple[Block, ...],
    call: RoundCall | None = None,
) -> Message:
    return Message(
        position=position,
        role=role,
        content=content,
        turn=commit.turn,
        round=commit.round,
        tool_call_id=call.tool_call_id if call else None,
        tool_name=call.tool_name if call else None,
        created_at=resources.clock.now_iso(),
    )


def _result(output: ToolOutput) -> ToolResultBlock:
    images = tuple(ImageBlock(mime_type=image.mime_type, data=image.data) for image in output.images or ())
    return ToolResultBlock(ok=output.ok, error=output.error, data=output.data, images=images or None)
