"""START, whatever kind of turn it is; and how the same request joins the turn that it has started."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from fermata.aws import observability
from fermata.aws.dynamodb import Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict
from fermata.turns.start.conversation_claim import CONVERSATION_BUSY_MESSAGE
from fermata.turns.turn import Turn, find_turn, turn_to_item
from fermata.turns.turn_log import LogEntry, log_entry_to_item, read_last_entry

IDEMPOTENCY_KEY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class StartedTurn:
    """The turn and its first log entry, which says `bridgeReady`."""

    turn: Turn
    entry: LogEntry


def commit_start(resources: Resources, turn: Turn, entry: LogEntry, *writes: Write) -> None:
    """START: turn row and log item 1 together with `along`. Conflict: what that was built on is not so any more."""
    bridges = resources.settings.bridges_table
    row, first = Put(bridges, turn_to_item(turn), if_absent=True), log_entry_to_item(resources, turn.partition, entry)
    try:
        resources.tables.write_items(*writes, row, Put(bridges, first, if_absent=True))
    except (TransactionCanceled, *AWS_ERRORS) as failure:
        # Nobody else writes under this turn's id: when it is there, it was written and only the answer was lost.
        if read_last_entry(resources, turn.pk) is not None:
            return
        if isinstance(failure, TransactionCanceled):
            raise Conflict(CONVERSATION_BUSY_MESSAGE, retry_after=2) from failure
        raise


def start_once(
    resources: Resources, caller: Caller, key: str, digest: str, start: Callable[[], StartedTurn]
) -> StartedTurn:
    """The turn that this key has started, or else the one that `start` starts now."""
    if found := find_started_turn(resources, caller, key, digest):
        return found
    try:
        return start()
    except Conflict:
        # The same request may have come twice at once, and the other one was faster.
        if found := find_started_turn(resources, caller, key, digest):
            return found
        raise


def find_started_turn(resources: Resources, caller: Caller, key: str, digest: str) -> StartedTurn | None:
    """What this key has started; None when it is new. Conflict: it was used for another request."""
    if not key:
        return None
    pk, sk = _place(caller.tenant, caller.user, key)
    found = resources.tables.get_item(resources.settings.bridges_table, pk, sk)
    if found is None or found["ttl"] <= resources.clock.time():
        return None
    if found["digest"] != digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key for a new prompt.")
    turn = find_turn(resources, caller.tenant, found["turn"])
    first, tail = read_last_entry(resources, turn.pk, at_or_before=1), read_last_entry(resources, turn.pk)
    if first is None or tail is None:
        return None
    if tail.state.phase == "started":
        start_workflow(resources, turn)
    return StartedTurn(turn, first)


def build_idempotency_puts(resources: Resources, turn: Turn, key: str, digest: str) -> list[Put]:
    """The write that keeps a key with the turn it starts."""
    if not key:
        return []
    pk, sk = _place(turn.tenant, turn.user, key)
    expires = int(resources.clock.time()) + IDEMPOTENCY_KEY_SECONDS
    item: Item = {"pk": pk, "sk": sk, "v": 1, "turn": turn.id, "digest": digest, "ttl": expires}
    free = "attribute_not_exists(pk) OR #ttl <= :now"
    values = {":now": int(resources.clock.time())}
    return [Put(resources.settings.bridges_table, item, condition=free, values=values, names={"#ttl": "ttl"})]


def start_workflow(resources: Resources, turn: Turn) -> None:
    """A start that fails here is made up for by the sweep, or by the same request again: the turn is already true."""
    try:
        resources.workflow.start_execution(turn.tenant, turn.id, turn.n)
    except AWS_ERRORS:
        observability.log_exception("turn.start_failed", turn=turn.id)


def _place(tenant: str, user: str, key: str) -> tuple[str, str]:
    return f"t#{tenant}#u#{user}#idempotency", hashlib.sha256(key.encode()).hexdigest()
