"""Open a turn for an invocation: read its rows and its newest messages at once (decisions 0004 and 0178)."""

import contextlib
from collections.abc import Sequence

from fermata.aws.background_call import BackgroundCall
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.conversations.history.conversation_history import read_first_batch
from fermata.conversations.message_store import count_positions
from fermata.domain.messages import Message
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.next_invocation_hint import InvocationHint
from fermata.turns.pause import build_pause_key, pause_from_item
from fermata.turns.round.early_round_start import EarlyRoundStart
from fermata.turns.round.invocation import Invocation
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_log import TurnLog, build_entry_key, log_entry_from_item, read_last_entry


def open_turn_context(resources: Resources, invocation: Invocation) -> TurnContext | None:
    """Read the turn, the end of its log, its pause and its newest messages: at once when the hint is fresh.

    Meanwhile the next round is taken, where the hint suffices for that (decision 0185).

    Returns:
        None when the turn is gone or runs in another execution.
    """
    hint = InvocationHint.from_json(invocation.hint)
    if not hint.conversation or invocation.is_hold:
        return _build_context(resources, invocation, hint, _read_rows(resources, invocation, hint), None)

    def read_messages() -> Sequence[Message] | None:
        with contextlib.suppress(*AWS_ERRORS):  # they are read again when they are needed
            return read_first_batch(resources, invocation.tenant, hint.conversation)
        return None

    with (
        EarlyRoundStart(resources, invocation, hint) as start,
        BackgroundCall(resources.clock, read_messages, "read-messages") as reading,
    ):
        rows = _read_rows(resources, invocation, hint)
        started_log = start.wait()
        context = _build_context(resources, invocation, hint, rows, started_log)
        if context is not None and context.turn.conversation == hint.conversation:
            context.prefetched_messages = _accept_messages(context, reading.result())
        if context is not None and started_log is not None:
            context.prepare_model_request()
            start.accept()
        return context


@value_dataclass(frozen=True)
class _Rows:
    """The rows at the places that a hint names. Each is None if there is none."""

    turn: Item | None
    pause: Item | None
    entry: Item | None
    next_entry: Item | None


def _read_rows(resources: Resources, invocation: Invocation, hint: InvocationHint) -> _Rows:
    pk = build_turn_pk(invocation.tenant, invocation.turn)
    keys = ("turn", build_pause_key(hint.round), build_entry_key(hint.entry), build_entry_key(hint.next))
    items = resources.tables.batch_get_items(resources.settings.bridges_table, [(pk, key) for key in keys])
    return _Rows(*(items.get((pk, key)) for key in keys))


def _build_context(
    resources: Resources, invocation: Invocation, hint: InvocationHint, rows: _Rows, started_log: TurnLog | None
) -> TurnContext | None:
    turn = turn_from_item(rows.turn, resources.clock.time())
    if turn is None or turn.execution_number != invocation.execution_number:
        return None
    if started_log is not None:
        if rows.entry is None or hint.entry + rows.entry["count"] != hint.next:
            raise RuntimeError(f"Turn {turn.id} was resumed with a hint that is not of its log.")
        return TurnContext(resources, turn, started_log, invocation)
    fresh_item = rows.entry if rows.next_entry is None else None
    context = TurnContext(resources, turn, _open_log(resources, turn, fresh_item), invocation)
    # With a stale hint the pause was read before the end of the log, so it may be older than that.
    if rows.pause and fresh_item and context.log.state.round == hint.round:
        context.pause = pause_from_item(resources, rows.pause)
    return context


def _open_log(resources: Resources, turn: Turn, fresh_item: Item | None) -> TurnLog:
    """Open the log at its end: the hinted entry if nothing follows it, else what a query finds."""
    last_entry = log_entry_from_item(resources, fresh_item) if fresh_item else read_last_entry(resources, turn.pk)
    if last_entry is None:
        raise RuntimeError(f"Turn {turn.id} has a row and no log.")
    return TurnLog.from_last_entry(resources, turn.partition, last_entry)


def _accept_messages(context: TurnContext, messages: Sequence[Message] | None) -> Sequence[Message] | None:
    """Return the messages if they reach as far as the log, which was read meanwhile: a hint may be stale."""
    if not messages:
        return None
    next_position = messages[0].position + count_positions(messages[0])
    return messages if next_position == context.log.state.next_position else None
