"""Store the pause of a round: its tool calls and how far each of them has come.

One item per round. Every change is conditional on the version that was read.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from fermata.aws import blob_store
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.aws.settings import TURN_RETENTION_SECONDS
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.tools import ToolOutput
from fermata.turns.next_invocation_hint import InvocationHint, hash_table_name
from fermata.turns.round_call import RoundCall
from fermata.turns.turn import Turn, TurnPartition
from fermata.turns.turn_log import StaleState
from fermata.turns.turn_state_from_log import TurnState

_STORED_TARGET_NAMES = StoredNames({"edit_key": "edit", "journal_usable_until": "deadline", "first_step": "first"})
_STORED_PAUSE_NAMES = StoredNames(
    {
        "planned_on_revision": "planned",
        "undo_target": "takes_back",
        "callback_token": "token",
        "is_held": "held",
        "last_entry_number": "entry",
        "next_number": "next",
        "turn_state_item": "standing",
        "has_budget": "budgeted",
    }
)


class InverseCallKey(StoredModel, alias_generator=StoredNames({"edit_key": "edit"})):
    """Call `step` of the inverse of an edit."""

    turn: str
    edit_key: str
    step: int


class UndoTarget(StoredModel, alias_generator=_STORED_TARGET_NAMES):
    """The edit that a round of an undo undoes."""

    turn: str
    edit_key: str
    effect_key: str
    inverse_calls: tuple[InverseCallKey, ...] = ()
    """For each call of the round, the inverse that it belongs to: the edit's own, or that of one of its redoes."""
    journal_usable_until: int = 0
    """Epoch seconds until when the edit's journal can be relied on; 0 if the pause does not say."""
    first_step: int = 0
    """In pauses stored without `inverse_calls`: the call of the edit's own inverse that the round begins with."""

    def get_inverse_call(self, call_index: int) -> InverseCallKey:
        if self.inverse_calls:
            return self.inverse_calls[call_index]
        return InverseCallKey(turn=self.turn, edit_key=self.edit_key, step=self.first_step + call_index)


class Pause(StoredModel, alias_generator=_STORED_PAUSE_NAMES, defer_build=False):
    """The tool calls of one round.

    `last_entry_number`, `next_number` and `turn_state_item` (the stored form of the turn's state) belong to the log
    entry that was written with the last change of a call. An answer therefore appends behind it without reading the log
    (decision 0003).
    """

    turn: str
    tenant: str
    user: str
    scope: str
    conversation: str
    round: int
    version: int
    calls: tuple[RoundCall, ...]
    planned_on_revision: str = ""
    """The document's revision that the model knew when it made these calls, updated by their own edits only
    (decision 0115)."""
    undo_target: UndoTarget | None = None
    callback_token: str = ""
    epoch: str = ""
    """Epoch of the invocation that waits with `callback_token`. An older invocation never replaces it."""
    is_held: bool = False
    """Whether the token belongs to the state Hold, which has no heartbeat (decision 0005): an answer then always
    resumes the round, which gives the next request a timeout of its own."""
    last_entry_number: int = 0
    next_number: int = 0
    turn_state_item: dict[str, Any] = Field(default_factory=dict)
    expires: int = 0
    keeps_outputs: bool = False
    """Whether the log keeps what the model reads of each call, because the turn's client shows it (decision 0379)."""
    has_budget: bool | None = None
    """Whether the turn's requests need a budget hold; None in pauses that were stored without it."""

    @property
    def partition(self) -> TurnPartition:
        """The partition of the turn's rows."""
        return TurnPartition(self.tenant, self.turn, self.expires)

    @property
    def deadline_limit(self) -> float:
        """Epoch seconds after which no request of this pause may wait."""
        limit = self.expires - TURN_RETENTION_SECONDS
        usable_until = self.undo_target.journal_usable_until if self.undo_target else 0
        return min(limit, usable_until) if usable_until else limit

    @property
    def turn_state(self) -> TurnState:
        """The turn's state after the log entry `last_entry_number`."""
        return TurnState.from_item(self.turn_state_item)

    def build_invocation_hint(self, table: str) -> dict[str, Any]:
        """Return where the next invocation may start to read, and start the next round from, as `InvocationHint`.

        Args:
            table: The name of the table in which the log is.
        """
        hint = InvocationHint(
            self.round,
            self.last_entry_number,
            self.next_number,
            conversation="" if self.undo_target else self.conversation,
            state=None if self.has_budget is None else self.turn_state,
            expires=self.expires,
            has_budget=bool(self.has_budget),
            table=hash_table_name(table),
        )
        return hint.to_json()

    @property
    def requested_call(self) -> RoundCall | None:
        """The call whose result the browser is asked for now; at most one."""
        return next((call for call in self.calls if call.state == "requested"), None)

    @property
    def next_call(self) -> RoundCall | None:
        """The first call that is not done, in the model's order."""
        return next((call for call in self.calls if not call.is_done), None)

    @property
    def waits_until(self) -> float:
        """Epoch seconds until which the first call that is not done waits for somebody outside; 0 if it does not."""
        call = self.next_call
        return call.waits_until if call else 0

    @property
    def are_calls_done(self) -> bool:
        return all(call.is_done for call in self.calls)

    def find_call(self, request_id: str) -> RoundCall | None:
        return next((call for call in self.calls if call.request_id == request_id), None)

    def with_edit_applied(self, call: RoundCall, output: ToolOutput, revision: str) -> "Pause":
        """Return the pause planned on `revision`, if this call's own edit has led to it (decision 0115)."""
        if not (revision and call.is_edit) or output.conflict:
            return self
        return self.model_copy(update={"planned_on_revision": revision})

    def with_token(self, token: str, epoch: str, *, held: bool = False) -> "Pause":
        """Return the pause as it is while an invocation waits with `token`."""
        return self.model_copy(update={"callback_token": token, "epoch": epoch, "is_held": held})

    def with_call(self, changed: RoundCall) -> "Pause":
        """Return the pause with the call of the same effect key replaced."""
        calls = tuple(changed if call.effect_key == changed.effect_key else call for call in self.calls)
        return self.model_copy(update={"calls": calls})


def build_pause_key(round_: int) -> str:
    return f"p#{round_:06d}"


def build_request_id(round_: int, call_index: int, nonce: str) -> str:
    """Return an id that carries its round, so that an answer finds its pause with one read (decision 0003)."""
    return f"{round_}.{call_index}.{nonce}"


def round_from_request_id(request_id: str) -> int | None:
    """Return the round of a request id that came from outside, or None when it is malformed."""
    head, _, _ = request_id.partition(".")
    return int(head) if head.isdecimal() and len(head) <= 6 else None


def hash_result(result: Any) -> str:
    canonical = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_pause_put(resources: Resources, pause: Pause, *, expected_version: int) -> Put:
    """Return the write that replaces version `expected_version` (0: no pause is stored yet) by `pause`."""
    item = _to_item(resources, pause)
    table = resources.settings.bridges_table
    if not expected_version:
        return Put(table, item, if_absent=True)
    return Put(
        table,
        item,
        condition="#version = :expected",
        values={":expected": expected_version},
        names={"#version": "version"},
    )


def store_pause_version(resources: Resources, pause: Pause) -> None:
    """Store the pause without a log entry. Raises StaleState when the version before it is no longer stored."""
    put = build_pause_put(resources, pause, expected_version=pause.version - 1)
    try:
        resources.tables.write_items(put)
    except ConditionFailed as refused:
        if refused.item != put.item:  # else it was stored by a copy of this write (decision 0150)
            raise StaleState from refused


def _to_item(resources: Resources, pause: Pause) -> Item:
    data = pause.to_stored_json(exclude=frozenset({"version", "calls", "tenant", "turn"}))
    calls = [call.to_stored_json() for call in pause.calls]
    item: Item = {
        "pk": pause.partition.pk,
        "sk": build_pause_key(pause.round),
        "v": 1,
        "turn": pause.turn,
        "tenant": pause.tenant,
        "version": pause.version,
        "data": json.dumps(data, separators=(",", ":")),
        "ttl": pause.expires,
    }
    calls_json = json.dumps(calls, separators=(",", ":"))
    if len(calls_json) <= blob_store.BLOB_THRESHOLD_BYTES:
        return item | {"calls": calls_json}
    return item | {"blob": resources.blobs.put_json(blob_store.turn_folder(pause.tenant, pause.turn), calls)}


def pause_from_item(resources: Resources, item: Item) -> Pause:
    calls = resources.blobs.get_json(item["blob"]) if "blob" in item else json.loads(item["calls"])
    data = json.loads(item["data"])
    return Pause.from_stored(
        {**data, "turn": item["turn"], "tenant": item["tenant"], "version": item["version"], "calls": calls}
    )


def load_pause(resources: Resources, turn: Turn, round_: int) -> Pause | None:
    item = resources.tables.get_item(resources.settings.bridges_table, turn.pk, build_pause_key(round_))
    return pause_from_item(resources, item) if item else None


def build_pause(
    turn: Turn,
    round_: int,
    calls: Sequence[RoundCall],
    planned_on_revision: str = "",
    undo_target: UndoTarget | None = None,
) -> Pause:
    """Return the first version of a round's pause. It is not stored yet."""
    return Pause(
        turn=turn.id,
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        round=round_,
        version=0,
        calls=tuple(calls),
        planned_on_revision=planned_on_revision,
        undo_target=undo_target,
        expires=turn.expires,
        keeps_outputs=bool(turn.protocol),
        has_budget=turn.has_budget,
    )
