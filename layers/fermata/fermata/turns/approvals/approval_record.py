"""Store one row for each approval: in its turn's partition, and in the index `open` while it waits for a decision."""

import json
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from fermata.aws.clock import is_valid_id, iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put, Update
from fermata.aws.resources import Resources
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.base import StoredModel
from fermata.domain.conversation import get_root_conversation
from fermata.domain.json_shortening import shorten_value
from fermata.tools.tool import Tool
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall
from fermata.turns.turn import build_turn_pk

ApprovalState = Literal["waiting", "approved", "denied", "expired", "stale", "cancelled"]
MAX_PREVIEW_CHARS = 2_000
"""Of the input, as the list of approvals shows it."""
_ID_PARTS = 4


class ApprovalPlace(NamedTuple):
    """Where an approval belongs: the call of this index in a round of a turn."""

    turn: str
    round: int
    call_index: int


class ApprovalRecord(StoredModel):
    """An approval as it is listed. The pause of the round has the whole input.

    `deadline` is in epoch seconds. `reasons` are those of ApprovalReason. The members about the decision are empty
    until there is one.
    """

    id: str
    tenant: str
    turn: str
    user: str
    scope: str
    conversation: str
    agent: str
    tool_call_id: str
    tool_name: str
    description: str
    risk: str
    access: str
    reasons: tuple[str, ...]
    input_preview: str
    """JSON text."""
    input_hash: str
    tool_digest: str
    requested_at: str
    deadline: float
    expires: int
    plan_id: str = ""
    """Of the edit plan that waits instead of a call; empty for a call (decision 0388)."""
    state: ApprovalState = "waiting"
    decided_at: str = ""
    decided_by: str = ""
    decision_reason: str = ""
    decided_input_hash: str = ""

    @property
    def place(self) -> ApprovalPlace:
        """The call that the approval is about."""
        place = parse_approval_id(self.id)
        assert place is not None, self.id
        return place


def build_approval_id(turn: str, round_: int, call_index: int, nonce: str) -> str:
    """Build an id that carries its place, so that a decision finds its rows with one read."""
    return f"{turn}.{round_}.{call_index}.{nonce}"


def parse_approval_id(approval_id: str) -> ApprovalPlace | None:
    """Return the place in an id that came from outside, or None when it is malformed."""
    parts = approval_id.split(".")
    if len(parts) != _ID_PARTS or not is_valid_id(parts[0]):
        return None
    if not all(part.isascii() and part.isdecimal() and len(part) <= 6 for part in parts[1:3]):
        return None
    return ApprovalPlace(parts[0], int(parts[1]), int(parts[2]))


def build_approval_sort_key(place: ApprovalPlace) -> str:
    return f"a#{place.round:06d}#{place.call_index:04d}"


def build_approval_key(resources: Resources, tenant: str, place: ApprovalPlace) -> ItemKey:
    """Return the key of the row of an approval.

    Args:
        resources: Name the table of turns.
        tenant: The turn's tenant.
        place: The call that waits: turn, round and number of the call.
    """
    table = resources.settings.bridges_table
    return ItemKey(table, build_turn_pk(tenant, place.turn), build_approval_sort_key(place))


def waiting_approvals_partition(tenant: str) -> str:
    """Return the partition of the index `open` in which a tenant's waiting approvals are listed."""
    return f"t#{tenant}#approvals"


def build_approval_record(
    pause: Pause, call: RoundCall, tool: Tool, arguments: dict[str, Any], now: float
) -> ApprovalRecord:
    """Return the record of a call that waits for a decision.

    Args:
        pause: The round of the call.
        call: The call, with its approval.
        tool: The tool that it calls.
        arguments: The input without what the service itself adds to it.
        now: Epoch seconds.
    """
    approval = call.approval
    assert approval is not None, call.effect_key
    return ApprovalRecord(
        id=approval.id,
        tenant=pause.tenant,
        turn=pause.turn,
        user=pause.user,
        scope=pause.scope,
        conversation=get_root_conversation(pause.conversation),
        agent=approval.agent,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        description=describe_call(tool, approval.reasons),
        risk=tool.risk.value,
        access=tool.access.value,
        reasons=approval.reasons,
        input_preview=json.dumps(shorten_value(arguments, MAX_PREVIEW_CHARS), separators=(",", ":")),
        input_hash=approval.input_hash,
        tool_digest=approval.tool_digest,
        requested_at=iso_from_epoch(now),
        deadline=approval.deadline,
        expires=pause.expires,
    )


_REASON_TEXTS = {
    ApprovalReason.TOOL: "This tool always asks.",
    ApprovalReason.RULE: "A rule asks for it.",
    ApprovalReason.OUTSIDE_CONTENT: "The model has read content from outside before it.",
    ApprovalReason.NEW_TOOL: "Nobody has approved this tool yet as it is now.",
    ApprovalReason.TURN_COST: "The turn has cost more than it may without being asked about.",
    ApprovalReason.DESTRUCTIVE_PLAN: "The plan removes or changes much at once.",
    ApprovalReason.PLAN_FIRST: "Its user wants to see the plan first.",
}


def describe_call(tool: Tool, reasons: tuple[str, ...]) -> str:
    """Say in words what a call would do, and why a person is asked."""
    purpose = tool.description.split(". ")[0].strip().rstrip(".")
    return " ".join([f"{purpose}.", *(_REASON_TEXTS[ApprovalReason(reason)] for reason in reasons)])


def approval_to_item(record: ApprovalRecord) -> Item:
    """Return the row of an approval. While it waits, it is in the index `open`."""
    index_keys = {"open": waiting_approvals_partition(record.tenant), "openSince": record.requested_at}
    return {
        "pk": build_turn_pk(record.tenant, record.turn),
        "sk": build_approval_sort_key(record.place),
        "v": 1,
        "ttl": record.expires,
        "state": record.state,
        "data": json.dumps(record.to_stored_json(exclude=frozenset({"state"})), separators=(",", ":")),
        **(index_keys if record.state == "waiting" else {}),
    }


def approval_from_item(item: Item) -> ApprovalRecord:
    decision = json.loads(item.get("decision", "{}"))
    return ApprovalRecord.from_stored({**json.loads(item["data"]), **decision, "state": item["state"]})


def build_approval_put(resources: Resources, record: ApprovalRecord) -> Put:
    """Return the write that lists a new approval."""
    return Put(resources.settings.bridges_table, approval_to_item(record), if_absent=True)


def build_decision_update(
    resources: Resources, tenant: str, approval_id: str, state: ApprovalState, decision: dict[str, str]
) -> Update:
    """Return the write that takes a waiting approval from the list, and keeps what was decided about it.

    Args:
        tenant: The tenant of the turn.
        approval_id: The approval's id, from the pause.
        state: What became of it.
        decision: The members of the record that say when, by whom and why.
    """
    place = parse_approval_id(approval_id)
    assert place is not None, approval_id
    return Update(
        *build_approval_key(resources, tenant, place),
        "SET #state = :state, decision = :decision REMOVE #open, openSince",
        {":state": state, ":decision": json.dumps(decision, separators=(",", ":")), ":waiting": "waiting"},
        names={"#state": "state", "#open": "open"},
        condition="#state = :waiting",
    )


def build_plan_decision_update(
    resources: Resources, record: ApprovalRecord, state: ApprovalState, decision: dict[str, str]
) -> Update:
    """Return the write that stores what was decided about a plan, which is kept from then on as long as its turn.

    Args:
        record: The approval of the plan.
        state: What became of it.
        decision: The members of the record that say when, by whom and why.
    """
    update = build_decision_update(resources, record.tenant, record.id, state, decision)
    return replace(
        update,
        expression=update.expression.replace("SET ", "SET #ttl = :ttl, ", 1),
        values={**update.values, ":ttl": record.expires},
        names={**update.names, "#ttl": "ttl"},
    )


def build_cancelled_approvals(resources: Resources, pause: Pause) -> tuple[Update, ...]:
    """Return the writes that take the waiting approvals of a turn that ends from the list."""
    waiting = [call.approval.id for call in pause.calls if call.state == "approval" and call.approval]
    places = [place for place in map(parse_approval_id, waiting) if place is not None]
    return tuple(_build_cancellation(resources, pause, place) for place in places)


def _build_cancellation(resources: Resources, pause: Pause, place: ApprovalPlace) -> Update:
    return Update(
        *build_approval_key(resources, pause.tenant, place),
        "SET #state = :cancelled REMOVE #open, openSince",
        {":cancelled": "cancelled"},
        names={"#state": "state", "#open": "open"},
    )
