"""Recover all open turns that may have stalled. Run once a minute (decision 0248)."""

from collections.abc import Iterator, Sequence

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.turns.generate.request_mark import MARKED_REQUEST_SECONDS, account_for_dead_request
from fermata.turns.prompt_queue.start_queued_prompt import start_queued_prompts
from fermata.turns.recover.open_turn_list import (
    OpenTurn,
    draw_turns_to_look_at,
    interleave_tenants,
    list_open_turns,
)
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import build_entry_key

SWEEP_SECONDS = 40.0
"""Of the function's 60, of which queued prompts and webhooks have 13 and dead requests 3; a call that has begun may
take longer."""
ACCOUNTING_SECONDS = 3.0
"""For requests of no stored turn whose functions have died."""
START_SECONDS = 25.0
"""Of these, for turns that never started."""
UNSTARTED_SECONDS = 3600.0
"""How old a turn may be whose start is looked after at each sweep: as long as an outage of the workflow may last."""
MAX_LOOKS = 2000
"""How many logs a sweep looks at."""
MAX_ASKED = 300
"""About how many turns a sweep asks the workflow: five a second, half of the quota of the smaller regions."""
KEYS_PER_READ = 100
CALLS_AT_ONCE = 4
STARTS_BETWEEN_LOOKS_AT_THE_CLOCK = 40
SECOND_ENTRY_KEY = build_entry_key(2)
"""The first entry is `bridgeReady`, written by START. The second is written by the turn's execution."""


def recover_open_turns(resources: Resources, start_grace_seconds: float | None = None) -> int:
    """Recover the open turns whose log has stood still for `start_grace_seconds`, as many as there is time for.

    Args:
        start_grace_seconds: How long a turn is given to start by itself; None for the setting of that name. With 0
            nothing can be starting it, because the whole service has just been started (decision 0161): every turn is
            recovered.

    Returns:
        How many open turns are older than that.
    """
    grace = resources.settings.start_grace_seconds if start_grace_seconds is None else start_grace_seconds
    found = list_open_turns(resources, resources.clock.now_iso(-grace))
    turns = found.stored
    sweep = _Sweep(resources, grace)
    if grace == 0:
        for turn in turns:
            sweep.recover(turn)
    else:
        sweep.start_unstarted_turns(turns)
        sweep.recover_silent_turns(turns)
    sweep.account_for_dead_requests(found.unstored)
    start_queued_prompts(resources, resources.clock.now_iso(-grace))
    return len(turns)


class _Sweep:
    def __init__(self, resources: Resources, grace_seconds: float) -> None:
        self._resources = resources
        self._grace_seconds = grace_seconds
        self._begun_at = resources.clock.monotonic()

    def start_unstarted_turns(self, turns: list[OpenTurn]) -> None:
        """Start the executions of turns whose log has its first entry only, the oldest of each tenant first.

        A turn that is older than `UNSTARTED_SECONDS` is left to `recover_silent_turns`.
        """
        oldest_start = self._resources.clock.time() - UNSTARTED_SECONDS
        young = interleave_tenants(turn for turn in turns if turn.started_at > oldest_start)
        for chunk in _split(young, KEYS_PER_READ * CALLS_AT_ONCE):
            for few in _split(self._select_unstarted(chunk), STARTS_BETWEEN_LOOKS_AT_THE_CLOCK):
                if self._is_over(START_SECONDS):
                    observability.log_warning("sweep.incomplete", step="start", open=len(turns))
                    return
                self._resources.clock.map_in_threads(self._start, few, CALLS_AT_ONCE)

    def _start(self, turn: OpenTurn) -> None:
        self.recover(turn, is_unstarted=True)

    def _select_unstarted(self, turns: Sequence[OpenTurn]) -> list[OpenTurn]:
        """Return the turns without a second log entry. The read may miss a new one: a second start changes nothing."""
        batches = list(_split(turns, KEYS_PER_READ))
        found = self._resources.clock.map_in_threads(self._read_second_entries, batches, CALLS_AT_ONCE)
        started: set[str] = set().union(*found)
        return [turn for turn in turns if build_turn_pk(turn.tenant, turn.id) not in started]

    def _read_second_entries(self, turns: Sequence[OpenTurn]) -> set[str]:
        """Return the partition keys of the turns that have a second entry."""
        keys = [(build_turn_pk(turn.tenant, turn.id), SECOND_ENTRY_KEY) for turn in turns]
        items = self._resources.tables.batch_get_items(self._resources.settings.bridges_table, keys, consistent=False)
        return {pk for pk, _ in items}

    def recover_silent_turns(self, turns: list[OpenTurn]) -> None:
        """Look at the logs of turns whose minute has come, and ask the workflow about those that stand still."""
        asked = 0
        drawn = draw_turns_to_look_at(turns, self._resources.clock.time())
        for looked, turn in enumerate(drawn):
            if asked == MAX_ASKED or looked == MAX_LOOKS or self._is_over(SWEEP_SECONDS):
                observability.log_warning("sweep.incomplete", step="ask", open=len(turns), left=len(drawn) - looked)
                return
            if self._is_silent(turn):
                asked += 1
                self.recover(turn)

    def _is_silent(self, turn: OpenTurn) -> bool:
        """Return whether nothing was appended for `grace_seconds`, or the log cannot be read."""
        pk = build_turn_pk(turn.tenant, turn.id)
        try:
            items = self._resources.tables.query_items(
                self._resources.settings.bridges_table,
                pk,
                min_sk="e#",
                max_sk="e#~",
                descending=True,
                limit=1,
                consistent=False,
            )
        except AWS_ERRORS:
            return True
        return not items or items[0]["at"] / 1000 <= self._resources.clock.time() - self._grace_seconds

    def recover(self, turn: OpenTurn, *, is_unstarted: bool = False) -> None:
        """Log a failure and go on, so that one turn does not keep the others from being recovered."""
        try:
            recover_turn(
                self._resources,
                turn.tenant,
                turn.id,
                start_grace_seconds=self._grace_seconds,
                is_unstarted=is_unstarted,
            )
        except Exception:  # noqa: BLE001 - logged whole; the next run tries again
            observability.log_exception("turn.recovery_failed", tenant=turn.tenant, turn=turn.id)

    def account_for_dead_requests(self, turns: list[OpenTurn]) -> None:
        """Write the ledger rows of requests whose functions have died, as many as there is time for (decision 0660)."""
        until = self._resources.clock.monotonic() + ACCOUNTING_SECONDS
        newest_start = self._resources.clock.time() - MARKED_REQUEST_SECONDS
        dead = [turn for turn in turns if turn.started_at <= newest_start]
        for few in _split(dead, STARTS_BETWEEN_LOOKS_AT_THE_CLOCK):
            if self._resources.clock.monotonic() >= until:
                observability.log_warning("sweep.incomplete", step="account", open=len(dead))
                return
            self._resources.clock.map_in_threads(self._account, few, CALLS_AT_ONCE)

    def _account(self, turn: OpenTurn) -> None:
        try:
            account_for_dead_request(self._resources, turn.tenant, turn.id)
        except Exception:  # noqa: BLE001 - logged whole; the next run tries again
            observability.log_exception("request.accounting_failed", tenant=turn.tenant, turn=turn.id)

    def _is_over(self, seconds: float) -> bool:
        return self._resources.clock.monotonic() - self._begun_at >= seconds


def _split(turns: Sequence[OpenTurn], size: int) -> Iterator[Sequence[OpenTurn]]:
    return (turns[start : start + size] for start in range(0, len(turns), size))
