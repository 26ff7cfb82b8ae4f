"""Mark a request that belongs to no stored turn before it is sent, and account for one whose function has died.

    t#<tenant>#turn#<turn>   request   what the ledger gets if nothing else is written; in the index `open` until then

A turn that is stored says in its log what it sends. One that is not has this row (decision 0660): it is written before
the first byte goes out, and closed in the transaction of the ledger rows. The sweep that finds it open long afterwards
writes them in the place of the function, and releases what it held.
"""

import json
from collections.abc import Sequence

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, TransactionCanceled, Update
from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable
from fermata.turns.turn import build_open_shard_key
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, ledger_partition
from fermata.usage.usage_writes import build_turn_end_writes

REQUEST_SORT_KEY = "request"
MARKED_REQUEST_SECONDS = 300
"""How long a request is left to its function. None takes longer than a minute, and no function goes on after that."""
MARK_TTL_SECONDS = 2 * 86_400
"""Longer than any copy of a write is on its way."""
DEAD_REQUEST_OUTCOME = "died"
DEAD_TURN_CODE = "interrupted"
_OPEN = "attribute_exists(#open)"


class RequestMark:
    """The mark of a turn that is stored nowhere. Its function is the only one that changes it while it is open."""

    def __init__(self, resources: Resources, outcome: TurnOutcome) -> None:
        """Create it without writing anything.

        Args:
            resources: Of the process.
            outcome: How the turn has ended, if nobody else says it.
        """
        self._resources, self._outcome = resources, outcome
        self._sent = 0

    def build_put(self, estimate: RequestUsage) -> Put:
        """Build the write that goes before the first request, with the hold of a budget if there is one.

        Args:
            estimate: The ledger row that the request gets if its function dies.
        """
        self._sent = 1
        now = self._resources.clock.time()
        item: Item = {
            **self._key,
            "v": 1,
            "sent": 1,
            "data": self._encode((estimate,)),
            "open": build_open_shard_key(self._outcome.turn),
            "openSince": self._resources.clock.now_iso(),
            "ttl": int(now) + MARK_TTL_SECONDS,
        }
        return Put(self._resources.settings.bridges_table, item, if_absent=True)

    def note_next(self, usages: Sequence[RequestUsage]) -> None:
        """Store, before one more request is sent, what those before it have used, and what this one is estimated at.

        Raises:
            ServiceUnavailable: The turn took so long that it was accounted for as dead.
        """
        update = Update(
            self._resources.settings.bridges_table,
            self._key["pk"],
            self._key["sk"],
            "SET #data = :data, sent = :sent",
            {":data": self._encode(usages), ":sent": self._sent + 1, ":was": self._sent},
            names={"#data": "data", "#open": "open"},
            condition=f"{_OPEN} AND sent = :was",
        )
        try:
            self._resources.tables.write_items(update)
        except ConditionFailed as refused:
            if not (refused.item and "open" in refused.item and refused.item["sent"] == self._sent + 1):
                raise ServiceUnavailable("The request took too long. Send it again.", retry_after=1) from refused
        self._sent += 1

    def build_close(self) -> Update:
        """Build the write that goes along with the ledger rows. It fails when the mark is not open any more."""
        return _build_close(self._resources, self._outcome.tenant, self._outcome.turn, self._sent)

    @property
    def _key(self) -> dict[str, str]:
        return {"pk": ledger_partition(self._outcome.tenant, self._outcome.turn), "sk": REQUEST_SORT_KEY}

    def _encode(self, usages: Sequence[RequestUsage]) -> str:
        stored = {"usages": [usage.to_stored_json() for usage in usages], "outcome": self._outcome.to_stored_json()}
        return json.dumps(stored, separators=(",", ":"))


def account_for_dead_request(resources: Resources, tenant: str, turn: str) -> None:
    """Write the ledger rows of requests whose function has died, and release what it held. Safe to repeat.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        turn: The id of the turn that is stored nowhere.
    """
    pk = ledger_partition(tenant, turn)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, REQUEST_SORT_KEY)
    if item is None or "open" not in item:
        return
    marked, recorded = json.loads(item["data"]), {"recorded_at": resources.clock.now_iso()}
    usages = [RequestUsage.from_stored(usage).model_copy(update=recorded) for usage in marked["usages"]]
    outcome = TurnOutcome.from_stored(marked["outcome"]).model_copy(update=recorded)
    writes = build_turn_end_writes(resources, outcome, usages)
    try:
        resources.tables.write_items(*writes, _build_close(resources, tenant, turn, item["sent"]))
    except TransactionCanceled:
        return  # its function was slow, and has written them itself
    observability.log_event("request.function_died", turn=turn, requests=len(usages))


def _build_close(resources: Resources, tenant: str, turn: str, sent: int) -> Update:
    """Build the write after which the mark says nothing any more. Its row stays, so that no copy brings it back."""
    return Update(
        resources.settings.bridges_table,
        ledger_partition(tenant, turn),
        REQUEST_SORT_KEY,
        "REMOVE #open, openSince, #data",
        {":sent": sent},
        names={"#open": "open", "#data": "data"},
        condition=f"{_OPEN} AND sent = :sent",
    )
