"""Call the endpoints at the end of a turn before it ends, so that what they return is part of the stream.

They are called in order, also after a failure. If another function ends the turn, as a cancellation does, they are
called afterwards, and what they return reaches nobody (decision 0368). So they are if the invocation has no time left
for all of them (decision 0563).
"""

from dataclasses import replace

from fermata.domain.events import DataPartEvent, Event, FinishHooksRunEvent, TerminalEvent
from fermata.domain.messages import Message
from fermata.turns.accounting import add_usage
from fermata.turns.end.end_turn import FinalRound
from fermata.turns.hooks.call_hooks import open_hook_caller
from fermata.turns.hooks.hook_payload import build_finish_payload, limit_data_parts, read_data_parts
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.turn_context import TurnContext


def run_finish_hooks(context: TurnContext, terminal: TerminalEvent, final_round: FinalRound) -> FinalRound:
    """Return the last round of a turn with the parts that its endpoints have returned.

    Args:
        context: The invocation that ends the turn.
        terminal: How it ends.
        final_round: What END would hold without hooks.

    Raises:
        TurnEnded, Superseded: Noticed while the endpoints worked.
    """
    if not context.agent.settings.hooks.on_finish:
        return final_round
    caller = open_hook_caller(context.resources, context.turn)
    if caller is None:
        return final_round
    payload = build_finish_payload(
        context.turn,
        terminal,
        _list_messages(context, final_round),
        add_usage(context.log.state, final_round.request_usages),
    )
    parts: list[DataPartEvent] = []
    events: tuple[Event, ...] = (FinishHooksRunEvent(),)
    with StreamWriter(context.resources, context.log, context.heartbeat, abort=caller.abort) as writer:
        writer.check_log()
        for endpoint_id in caller.list_endpoint_ids("on_finish"):
            if not context.has_time_for(caller.count_seconds(endpoint_id)):
                events = ()  # all are called afterwards; those that were called know the repetition by its key
                break
            output = caller.call_endpoint("on_finish", "finish", endpoint_id, payload)
            parts += read_data_parts(output.data) if output and output.ok else ()
    return replace(final_round, events=(*final_round.events, *limit_data_parts(parts), *events))


def _list_messages(context: TurnContext, final_round: FinalRound) -> list[Message]:
    context.load_history()
    stored = list(context.history.stored_messages) if context.history else []
    stored.sort(key=lambda message: message.position)
    if not final_round.content:
        return stored
    turn, state = context.turn, context.log.state
    answer = Message(
        position=state.next_position,
        role="assistant",
        content=final_round.content,
        turn=turn.id,
        round=state.round,
    )
    return [*stored, answer]
