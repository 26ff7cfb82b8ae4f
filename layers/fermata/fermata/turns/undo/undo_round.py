"""Run the rounds of an undo: each requests the inverse of one edit, newest first; then the undo ends."""

from fermata.agents.registry import get_editor_toolset
from fermata.domain.events import DoneEvent, ErrorEvent, RoundStartedEvent, ToolCallEvent
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.edit_results import InverseStep, find_edit_tool
from fermata.tools.calls.pipeline import build_effect_key, get_timeout_seconds
from fermata.tools.tool_names import get_wire_name
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.edit_journal import JournalEntry, iter_journal_newest_first, load_inverse_steps
from fermata.turns.end.end_turn import end_turn
from fermata.turns.pause import Pause, UndoTarget, build_pause
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import RoundCommit
from fermata.turns.undo.inverse_plan import PlannedCall, UndoObstacle, plan_undo

OUTDATED_UNDO_ERROR = ErrorEvent(
    message="The undo waited until the journal of the turn expired. Edits that it did not reach are unchanged.",
    code="too_old",
    retryable=False,
)


@value_dataclass(frozen=True)
class NextInverse:
    """The edit to undo now, and the revision that the document is expected to have."""

    entry: JournalEntry
    calls: list[PlannedCall]
    planned_on_revision: str


def run_undo_round(context: TurnContext) -> bool:
    """Request the next inverse, or end the undo. Returns True: there may be more to do.

    Raises:
        StaleState: Another writer has moved the turn on.
    """
    seen_state = context.log.state
    next_inverse = _find_next_inverse(context)
    if next_inverse is None:
        terminal = OUTDATED_UNDO_ERROR if _is_outdated(context) else DoneEvent()
        end_turn(context.resources, context.turn, context.log, terminal, is_expected=lambda now: now == seen_state)
        return True
    invocation = context.invocation
    pause = _build_pause(context, next_inverse)
    transition = apply_outputs(pause, {}, now=context.resources.clock.time(), nonce=context.new_nonce())
    round_started = RoundStartedEvent(round=pause.round, epoch=invocation.epoch, owner=invocation.owner)
    call_events = tuple(
        ToolCallEvent(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input)
        for call in pause.calls
    )
    context.commit(RoundCommit.for_pause(pause, transition, first_events=(round_started, *call_events)))
    return True


def _find_next_inverse(context: TurnContext) -> NextInverse | None:
    """Return the newest edit below the one that was processed last, down to `Turn.through`."""
    turn = context.turn
    if _is_outdated(context):
        return None
    last_key = context.log.state.last_edit_key
    newer_entry: JournalEntry | None = None
    for entry in iter_journal_newest_first(context.resources, turn.tenant, turn.undone_turn, last_key):
        if entry.key < turn.oldest_edit_to_undo:
            return None
        calls = _plan_calls(context, entry) if entry.key != last_key else []
        if calls:
            return NextInverse(entry, calls, _plan_revision(turn.id, entry, newer_entry))
        newer_entry = entry
    return None


def _is_outdated(context: TurnContext) -> bool:
    """Return whether the journal of the undone turn may be gone before another answer arrives (decision 0156)."""
    deadline = context.turn.undo_deadline
    return bool(deadline) and context.resources.clock.time() >= deadline


def _plan_calls(context: TurnContext, entry: JournalEntry) -> list[PlannedCall]:
    try:
        return plan_undo(context.resources, context.turn, entry)
    except UndoObstacle:  # the report at the end names it
        return []


def _plan_revision(undo: str, entry: JournalEntry, newer_entry: JournalEntry | None) -> str:
    """Return the revision that the edit has left behind, or a later one that is known to have the same content.

    A later one exists where the edit was redone, or where the edit right behind it was undone. If both are true, what
    this undo has done itself is the latest.
    """
    mark = entry.mark
    original = entry.edit.revision_after
    if mark and entry.state == "partly":
        return mark.revision_after or original
    redone = mark.revision_after if mark and mark.last_redo_turn else ""
    follows = newer_entry is not None and newer_entry.edit.revision_before == original
    newer_mark = newer_entry.mark if newer_entry and follows and newer_entry.state == "undone" else None
    if newer_mark and (newer_mark.marking_turn == undo or not redone):
        return newer_mark.revision_after or redone or original
    return redone or original


def _build_pause(context: TurnContext, next_inverse: NextInverse) -> Pause:
    turn = context.turn
    entry = next_inverse.entry
    round_ = context.log.state.round + 1
    steps = _load_steps(context, next_inverse.calls)
    calls = [_build_call(context, round_, index, step) for index, step in enumerate(steps)]
    undo_target = UndoTarget(
        turn=turn.undone_turn,
        edit_key=entry.key,
        effect_key=entry.edit.effect_key,
        journal_usable_until=turn.undo_deadline,
        inverse_calls=tuple(call.key for call in next_inverse.calls),
    )
    pause = build_pause(turn, round_, calls, next_inverse.planned_on_revision, undo_target)
    return pause.with_token(context.invocation.token, context.invocation.epoch)


def _load_steps(context: TurnContext, calls: list[PlannedCall]) -> list[InverseStep]:
    entries = {(call.entry.turn, call.entry.key): call.entry for call in calls}
    inverses = {key: load_inverse_steps(context.resources, entry) for key, entry in entries.items()}
    return [inverses[call.entry.turn, call.entry.key][call.step] for call in calls]


def _build_call(context: TurnContext, round_: int, index: int, step: InverseStep) -> RoundCall:
    tool = find_edit_tool(context.toolset, step.tool) or find_edit_tool(
        get_editor_toolset(context.turn.scope), step.tool
    )
    default_seconds = context.resources.settings.browser_wait_seconds
    return RoundCall(
        tool_call_id=f"undo-{round_}-{index}",
        tool_name=get_wire_name(tool, context.tool_names) if tool else step.tool,
        runner="browser",
        is_edit=True,
        effect_key=build_effect_key(context.turn.id, round_, index),
        wait_seconds=get_timeout_seconds(tool, default_seconds) if tool else default_seconds,
        input=step.input,
    )
