"""Remove people from the trail of decisions, whose chain does not cover names and reasons (decision 0315)."""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Update
from fermata.aws.resources import Resources
from fermata.turns.approvals.approval_record import build_approval_key, parse_approval_id
from fermata.turns.approvals.decision_trail import iter_trail

_OF_THE_TURN = ("askedFor", "reason")
"""Members that are about the turn; the others are about whoever has decided."""


def erase_trail_names(resources: Resources, tenant: str, user: str, turns: Collection[str]) -> int:
    """Remove a user, and what was said about turns that are erased, from a tenant's trail.

    Args:
        resources: The tables.
        tenant: The tenant's name.
        user: The user who is erased; empty when a conversation is.
        turns: The turns that are erased.

    Returns:
        How many entries were changed.
    """
    return sum(_erase_names(resources, tenant, item, user, turns) for item in iter_trail(resources, tenant))


def _erase_names(resources: Resources, tenant: str, item: Item, user: str, turns: Collection[str]) -> int:
    facts = json.loads(item["data"])
    personal: dict[str, dict[str, str]] = item["personal"]
    is_of_erased_turn = facts["turn"] in turns
    erased = {
        name
        for name, kept in personal.items()
        if (user and kept["value"] == user) or (is_of_erased_turn and name in _OF_THE_TURN)
    }
    if not erased:
        return 0
    remaining = {name: kept for name, kept in personal.items() if name not in erased}
    update = Update(
        resources.settings.bridges_table,
        item["pk"],
        item["sk"],
        "SET personal = :remaining",
        {":remaining": remaining, ":read": personal},
        condition="personal = :read",
    )
    with suppress(ConditionFailed):  # another run has removed them
        resources.tables.write_items(update)
    if "decidedBy" in erased:
        _erase_approver(resources, tenant, facts["approval"])
    return 1


def _erase_approver(resources: Resources, tenant: str, approval_id: str) -> None:
    """Remove the decision's author and words from the approval, which is in the turn of somebody else."""
    place = parse_approval_id(approval_id)
    if place is None:
        return
    key = build_approval_key(resources, tenant, place)
    row = resources.tables.get_item_by_key(key)
    if row is None or "decision" not in row:
        return
    decision = json.loads(row["decision"]) | {"decided_by": "", "decision_reason": ""}
    update = Update(
        *key,
        "SET decision = :new",
        {":new": json.dumps(decision, separators=(",", ":")), ":read": row["decision"]},
        condition="decision = :read",
    )
    with suppress(ConditionFailed):  # the turn was erased meanwhile
        resources.tables.write_items(update)


def iter_trail_entries_of(resources: Resources, tenant: str, user: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of the trail that name a user, without what they say about others."""
    for item in iter_trail(resources, tenant):
        own = {name: kept for name, kept in item["personal"].items() if kept["value"] == user}
        if own:
            yield item | {"personal": own}
