"""Write ROUND and ANSWER: a model's response, or results of its calls, in one transaction with their log entry.

The log entry, the message rows, the pause and the ledger rows of a commit become true together or not at all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fermata.aws.dynamodb_items_and_writes import TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.domain.blocks import Block, ImageBlock, ToolResultBlock
from fermata.domain.events import Event
from fermata.domain.messages import Message, Role
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.accounting import add_usage
from fermata.turns.call_transitions import Transition
from fermata.turns.pause import Pause, UndoTarget, build_pause_put
from fermata.turns.round_call import RoundCall
from fermata.turns.turn_log import LogEntry, StaleState, TurnLog, fixed_events
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_request_writes


class PauseChanged(StaleState):
    """The stored pause is no longer the version that was read."""


def no_extra_writes(_log_entry: LogEntry) -> Sequence[Write]:
    return ()


def keep_state(state: TurnState) -> TurnState:
    return state


@value_dataclass(frozen=True)
class RoundCommit:
    """The content of one transaction. Its events are `first_events`, then the transition's, then `last_events`."""

    tenant: str
    conversation: str
    turn: str
    round: int
    transition: Transition | None = None
    first_events: tuple[Event, ...] = ()
    last_events: tuple[Event, ...] = ()
    response_blocks: tuple[Block, ...] = ()
    request_usages: tuple[RequestUsage, ...] = ()
    snapshot_key: str = ""
    revision: str = ""
    """The document's revision after it; empty when the editor did not report one."""
    build_extra_writes: Callable[[LogEntry], Sequence[Write]] = no_extra_writes
    """Returns further writes of the transaction, given its log entry."""
    stops_turn: bool = False
    """Whether the turn ends when its calls have their results."""
    update_state: Callable[[TurnState], TurnState] = keep_state
    """Sets in the turn's state what neither events nor usages contain."""
    is_ready_for_next_round: bool = False
    """Whether the next round may begin although no call was made, because the provider paused the response."""

    @classmethod
    def for_pause(
        cls,
        pause: Pause,
        transition: Transition,
        *,
        first_events: tuple[Event, ...] = (),
        last_events: tuple[Event, ...] = (),
        snapshot_key: str = "",
        revision: str = "",
        build_extra_writes: Callable[[LogEntry], Sequence[Write]] = no_extra_writes,
        update_state: Callable[[TurnState], TurnState] = keep_state,
    ) -> "RoundCommit":
        """Return the commit of a transition of `pause`."""
        return cls(
            tenant=pause.tenant,
            conversation=pause.conversation,
            turn=pause.turn,
            round=pause.round,
            transition=transition,
            first_events=first_events,
            last_events=last_events,
            snapshot_key=snapshot_key,
            revision=revision,
            build_extra_writes=build_extra_writes,
            update_state=update_state,
        )

    @property
    def undo_target(self) -> UndoTarget | None:
        return self.transition.pause.undo_target if self.transition else None

    @property
    def outputs(self) -> tuple[tuple[RoundCall, ToolOutput], ...]:
        """The calls that this commit answers, with what the model reads of them."""
        return self.transition.outputs if self.transition else ()

    @property
    def all_events(self) -> tuple[Event, ...]:
        return (*self.first_events, *(self.transition.events if self.transition else ()), *self.last_events)


@value_dataclass(frozen=True)
class CommitResult:
    """The stored entry, pause and messages of a commit."""

    entry: LogEntry
    pause: Pause | None
    messages: tuple[Message, ...]


def write_round_commit(resources: Resources, log: TurnLog, commit: RoundCommit) -> CommitResult:
    """Append a commit to the log, with the rows that belong to it.

    Raises:
        PauseChanged: Another writer has changed the pause since it was read, or a row of `build_extra_writes`.
        TurnEnded, Superseded: As `TurnLog.append`.
    """
    plan = _CommitPlan(resources, commit)
    try:
        log_entry = log.append(fixed_events(*commit.all_events), plan.build_writes, update_state=plan.update_state)
    except TransactionCanceled as refused:
        raise PauseChanged from refused
    return plan.build_result(log_entry)


def prepare_round_commit(
    resources: Resources, log: TurnLog, commit: RoundCommit
) -> tuple[CommitResult, tuple[Write, ...]]:
    """Return what a commit stores and its writes, for a transaction of another turn (`TurnLog.prepare_append`).

    Args:
        log: Of the turn, read to its end.
        commit: The commit.

    Raises:
        TurnEnded: The turn is over.
    """
    plan = _CommitPlan(resources, commit)
    log_entry, writes = log.prepare_append(
        fixed_events(*commit.all_events), plan.build_writes, update_state=plan.update_state
    )
    return plan.build_result(log_entry), writes


class _CommitPlan:
    """The rows and the state that belong to the log entry of a commit."""

    def __init__(self, resources: Resources, commit: RoundCommit) -> None:
        self._resources = resources
        self._commit = commit
        self._messages = build_commit_messages(resources, commit)
        self._position_count = sum(map(message_store.count_positions, self._messages))

    def build_writes(self, log_entry: LogEntry, before: TurnState) -> Sequence[Write]:
        resources, commit = self._resources, self._commit
        message_puts = [
            message_store.build_message_put(resources, commit.tenant, commit.conversation, message)
            for message in _add_usage_so_far(shift_positions(self._messages, before.next_position), log_entry.state)
        ]
        return (
            *_build_pause_writes(resources, commit, log_entry),
            *message_puts,
            *build_request_writes(resources, commit.request_usages),
            *commit.build_extra_writes(log_entry),
        )

    def update_state(self, _before: TurnState, after: TurnState) -> TurnState:
        updated = _update_state(self._resources, self._commit, after)
        return replace(updated, next_position=after.next_position + self._position_count)

    def build_result(self, log_entry: LogEntry) -> CommitResult:
        transition = self._commit.transition
        first_position = log_entry.state.next_position - self._position_count
        return CommitResult(
            log_entry,
            _locate_pause(transition.pause, log_entry) if transition else None,
            shift_positions(self._messages, first_position),
        )


def _update_state(resources: Resources, commit: RoundCommit, after: TurnState) -> TurnState:
    deadline = commit.transition.deadline if commit.transition else 0
    is_held = deadline - resources.clock.time() > resources.settings.heartbeat_seconds
    state = add_usage(after, commit.request_usages) if commit.request_usages else after
    return replace(
        commit.update_state(state),
        phase="ready" if commit.is_ready_for_next_round else state.phase,
        snapshot_key=commit.snapshot_key or state.snapshot_key,
        revision=commit.revision or state.revision,
        is_stopping=state.is_stopping or commit.stops_turn,
        held_until=int(deadline) if is_held else 0,
        last_edit_key=commit.undo_target.edit_key if commit.undo_target else state.last_edit_key,
    )


def _build_pause_writes(resources: Resources, commit: RoundCommit, log_entry: LogEntry) -> tuple[Write, ...]:
    """Build the put of the pause. One that is answered before it was ever stored is not stored (decision 0008)."""
    if commit.transition is None:
        return ()
    pause = _locate_pause(commit.transition.pause, log_entry)
    previous_version = pause.version - 1
    if pause.are_calls_done and not previous_version:
        return ()
    return (build_pause_put(resources, pause, expected_version=previous_version),)


def _locate_pause(pause: Pause, log_entry: LogEntry) -> Pause:
    """Return the pause as it is stored together with a log entry (decision 0003)."""
    return pause.model_copy(
        update={
            "last_entry_number": log_entry.first_number,
            "next_number": log_entry.next_number,
            "turn_state_item": log_entry.state.to_item(),
        }
    )


def build_commit_messages(resources: Resources, commit: RoundCommit) -> list[Message]:
    """Build the response, then every result, with positions that count from 0.

    An undo writes no messages but one, when it ends (decision 0117).
    """
    messages: list[Message] = []
    if commit.undo_target:
        return messages
    if commit.response_blocks:
        messages.append(_build_message(resources, commit, 0, "assistant", commit.response_blocks))
    for call, output in commit.outputs:
        position = sum(map(message_store.count_positions, messages))
        messages.append(_build_message(resources, commit, position, "tool", (_build_result_block(output),), call))
    return messages


def shift_positions(messages: Sequence[Message], first_position: int) -> tuple[Message, ...]:
    """Return messages whose positions count from 0 with those that they have in the conversation."""
    return tuple(message.model_copy(update={"position": first_position + message.position}) for message in messages)


def _add_usage_so_far(messages: Sequence[Message], state: TurnState) -> Iterator[Message]:
    """Yield the messages; the response says what the turn has used when it is stored."""
    for message in messages:
        is_response = message.role == "assistant"
        yield message.model_copy(update={"turn_usage": state.usage_so_far}) if is_response else message


def _build_message(
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


def _build_result_block(output: ToolOutput) -> ToolResultBlock:
    images = tuple(ImageBlock(mime_type=image.mime_type, data=image.data) for image in output.images or ())
    return ToolResultBlock(ok=output.ok, error=output.error, data=output.data, images=images or None)
