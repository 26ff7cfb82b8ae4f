"""Write the last line of a turn in the audit log."""

from fermata.aws import observability
from fermata.domain.events import ErrorEvent, TerminalEvent
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState


def log_turn_end(turn: Turn, terminal: TerminalEvent, after: TurnState) -> None:
    """Write the turn's last line of the audit. A cancelled turn counts as completed: its user wanted it.

    Args:
        turn: The turn.
        terminal: How it has ended.
        after: Its state then.
    """
    error = terminal if isinstance(terminal, ErrorEvent) else None
    observability.log_audit_event(
        f"ai.{'undo' if turn.undone_turn else 'chat'}.{'failed' if error else 'completed'}",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.root_conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
        how=terminal.type,
        rounds=after.round,
        prompt=after.prompt_tokens,
        completion=after.completion_tokens,
        cache_read=after.cache_read_tokens,
        cache_creation=after.cache_creation_tokens,
        cost=after.cost,
        code=error.code if error else None,
    )
