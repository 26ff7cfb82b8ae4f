"""START, whatever kind of turn it is; and how the same request joins the turn that it has started."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put, TransactionRefused, Write
from fermata.aws.trouble import TROUBLE
from fermata.turns import log as logs
from fermata.turns import turn as turns
from fermata.turns.log import Entry
from fermata.turns.room import BUSY
from fermata.turns.turn import Turn
from fermata.words.caller import Caller
from fermata.words.errors import Conflict

IDEMPOTENCY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Started:
    """The turn and its first log entry, which says `bridgeReady`."""

    turn: Turn
    entry: Entry


def make_true(desk: Desk, turn: Turn, entry: Entry, *along: Write) -> None:
    """START: turn row and log item 1 together with `along`. Conflict: what that was built on is not so any more."""
    bridges = desk.settings.bridges_table
    row, first = Put(bridges, turns.item(turn), absent=True), logs.item(desk, turn.place, entry)
    try:
        desk.tables.write(*along, row, Put(bridges, first, absent=True))
    except (TransactionRefused, *TROUBLE) as failure:
        # Nobody else writes under this turn's id: when it is there, it was written and only the answer was lost.
        if logs.last(desk, turn.pk) is not None:
            return
        if isinstance(failure, TransactionRefused):
            raise Conflict(BUSY, retry_after=2) from failure
        raise


def started_once(desk: Desk, caller: Caller, key: str, digest: str, start: Callable[[], Started]) -> Started:
    """The turn that this key has started, or else the one that `start` starts now."""
    if found := joined(desk, caller, key, digest):
        return found
    try:
        return start()
    except Conflict:
        # The same request may have come twice at once, and the other one was faster.
        if found := joined(desk, caller, key, digest):
            return found
        raise


def joined(desk: Desk, caller: Caller, key: str, digest: str) -> Started | None:
    """What this key has started; None when it is new. Conflict: it was used for another request."""
    if not key:
        return None
    pk, sk = _place(caller.tenant, caller.user, key)
    found = desk.tables.get(desk.settings.bridges_table, pk, sk)
    if found is None or found["ttl"] <= desk.clock.time():
        return None
    if found["digest"] != digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key for a new prompt.")
    turn = turns.find(desk, caller.tenant, found["turn"])
    first, tail = logs.last(desk, turn.pk, upto=1), logs.last(desk, turn.pk)
    if first is None or tail is None:
        return None
    if tail.standing.phase == "started":
        set_going(desk, turn)
    return Started(turn, first)


def remembered(desk: Desk, turn: Turn, key: str, digest: str) -> list[Put]:
    """The write that keeps a key with the turn it starts."""
    if not key:
        return []
    pk, sk = _place(turn.tenant, turn.user, key)
    expires = int(desk.clock.time()) + IDEMPOTENCY_SECONDS
    item: Item = {"pk": pk, "sk": sk, "v": 1, "turn": turn.id, "digest": digest, "ttl": expires}
    free = "attribute_not_exists(pk) OR #ttl <= :now"
    values = {":now": int(desk.clock.time())}
    return [Put(desk.settings.bridges_table, item, condition=free, values=values, names={"#ttl": "ttl"})]


def set_going(desk: Desk, turn: Turn) -> None:
    """A start that fails here is made up for by the sweep, or by the same request again: the turn is already true."""
    try:
        desk.workflow.start(turn.tenant, turn.id, turn.n)
    except TROUBLE:
        signals.failed("turn.start_failed", turn=turn.id)


def _place(tenant: str, user: str, key: str) -> tuple[str, str]:
    return f"t#{tenant}#u#{user}#idempotency", hashlib.sha256(key.encode()).hexdigest()
