"""Take the next round beside the reads of an invocation, from what its hint says (decision 0185)."""

import contextlib
from typing import Self

from fermata.aws.background_call import BackgroundCall
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.events import NOT_SENT_CODE, RequestFailedEvent, RoundStartedEvent
from fermata.turns.next_invocation_hint import InvocationHint, hash_table_name
from fermata.turns.round.invocation import Invocation
from fermata.turns.turn import TurnPartition
from fermata.turns.turn_log import LostRace, TurnLog, fixed_events


class EarlyRoundStart:
    """Context manager around the reads. It appends roundStarted meanwhile, if the hint suffices for that.

    Within the block, `accept` says that the request will be sent. Otherwise the start is withdrawn at the end of the
    block, so that nobody accounts for a request that was never made.
    """

    def __init__(self, resources: Resources, invocation: Invocation, hint: InvocationHint) -> None:
        self._resources = resources
        self._invocation = invocation
        self._hint = hint
        self._appending: BackgroundCall[TurnLog | None] | None = None
        self._is_accepted = False

    def __enter__(self) -> Self:
        table = hash_table_name(self._resources.settings.bridges_table)
        if self._hint.table == table and _can_start_round(self._invocation, self._hint):
            self._appending = BackgroundCall(self._resources.clock, self._append, "start-round")
        return self

    def __exit__(self, *_: object) -> None:
        log = self.wait()
        if log is not None and not self._is_accepted:
            with contextlib.suppress(*AWS_ERRORS):
                log.append(fixed_events(RequestFailedEvent(code=NOT_SENT_CODE)))

    def wait(self) -> TurnLog | None:
        """Return the log behind roundStarted; None if it was not appended, so that the rows say what is to be done."""
        return self._appending.result() if self._appending else None

    def accept(self) -> None:
        """Keep the start: its request is sent, unless the log shows until then that the turn has moved on."""
        self._is_accepted = True

    def _append(self) -> TurnLog | None:
        """Append behind the hinted entry. Success proves that it was the last one: appends are conditional."""
        hint, invocation = self._hint, self._invocation
        assert hint.state is not None
        partition = TurnPartition(invocation.tenant, invocation.turn, hint.expires)
        log = TurnLog(self._resources, partition, hint.entry, hint.next, hint.state)
        event = RoundStartedEvent(
            round=hint.state.round + 1,
            epoch=invocation.epoch,
            owner=invocation.owner,
            awaits_budget_hold=hint.has_budget or None,
        )
        with contextlib.suppress(LostRace, *AWS_ERRORS):
            log.append(fixed_events(event), is_expected=lambda now: now == hint.state)
            log.owner = invocation.owner
            return log
        return None


def _can_start_round(invocation: Invocation, hint: InvocationHint) -> bool:
    """Return whether all calls are answered and a model is asked next. The first round's start needs its history."""
    state = hint.state
    if state is None or invocation.is_hold or not hint.conversation:
        return False
    is_next = state.phase == "ready" and state.epoch <= invocation.epoch
    is_next = is_next and not state.is_stopping and not state.is_answered
    return is_next and bool(state.estimated_prompt_tokens)
