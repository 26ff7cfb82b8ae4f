"""Record every decision in a trail of the tenant: append-only, each entry with the hash of the one before.

An entry holds no name and no reason in clear text that its hash covers: it holds commitments to them. Who is erased is
removed beside the entry, and the chain still holds (decision 0315).
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass

FIRST_HASH = "0" * 64
"""What the first entry has in place of the hash of the one before."""
TRAIL_HEAD_SORT_KEY = "head"
KNOWN_TOOLS_SORT_KEY = "known-tools"
_SALT_CHARS = 22
MAX_HEAD_READS = 5
_HEAD_WAIT_SECONDS = 0.1


def trail_partition(tenant: str) -> str:
    """Return the partition of a tenant's trail, which never expires."""
    return f"t#{tenant}#trail"


def build_entry_sort_key(number: int) -> str:
    return f"d#{number:010d}"


def build_head_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row that holds the number and the hash of the newest entry."""
    return ItemKey(resources.settings.bridges_table, trail_partition(tenant), TRAIL_HEAD_SORT_KEY)


def build_known_tools_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row that holds the digests of the tools that a tenant has approved."""
    return ItemKey(resources.settings.bridges_table, trail_partition(tenant), KNOWN_TOOLS_SORT_KEY)


@value_dataclass(frozen=True)
class TrailHead:
    """The newest entry of a trail: its number and hash."""

    number: int = 0
    hash: str = FIRST_HASH

    @classmethod
    def from_item(cls, item: Item | None) -> "TrailHead":
        """Read the row of the head; an empty trail has none."""
        return cls(item["number"], item["hash"]) if item else cls()


def build_trail_writes(
    resources: Resources,
    tenant: str,
    head: TrailHead,
    entries: tuple[tuple[Mapping[str, Any], Mapping[str, str]], ...],
) -> tuple[Put, ...]:
    """Return the writes that append entries behind `head`, and move the head.

    Args:
        tenant: The tenant whose trail grows.
        head: The newest entry as it was read. If it is no longer, the transaction is refused.
        entries: The facts of each entry, and its personal members, of which the hash covers a commitment only.
    """
    table = resources.settings.bridges_table
    puts: list[Put] = []
    newest = head
    for facts, personal in entries:
        item = _build_entry(tenant, newest, facts, personal)
        newest = TrailHead(item["number"], item["hash"])
        puts.append(Put(table, item, if_absent=True))
    head_item = {"pk": trail_partition(tenant), "sk": TRAIL_HEAD_SORT_KEY, "v": 1, **vars(newest)}
    condition = "#hash = :hash" if head.number else "attribute_not_exists(#hash)"
    values = {":hash": head.hash} if head.number else {}
    puts.append(Put(table, head_item, condition=condition, values=values, names={"#hash": "hash"}))
    return tuple(puts)


def _build_entry(tenant: str, head: TrailHead, facts: Mapping[str, Any], personal: Mapping[str, str]) -> Item:
    salts = {name: new_id(_SALT_CHARS) for name in personal}
    committed = {name: compute_commitment(salts[name], value) for name, value in personal.items()}
    number = head.number + 1
    data = json.dumps({"number": number, **facts, "committed": committed}, sort_keys=True, separators=(",", ":"))
    return {
        "pk": trail_partition(tenant),
        "sk": build_entry_sort_key(number),
        "v": 1,
        "number": number,
        "data": data,
        "previous": head.hash,
        "hash": compute_entry_hash(head.hash, data),
        "personal": {name: {"salt": salts[name], "value": value} for name, value in personal.items()},
    }


def compute_entry_hash(previous: str, data: str) -> str:
    """Return the hash of an entry, given that of the one before and the entry's text."""
    return hashlib.sha256(f"{previous}\n{data}".encode()).hexdigest()


def compute_commitment(salt: str, value: str) -> str:
    """Return what an entry holds in place of a personal value: nobody finds the value without the salt."""
    return hashlib.sha256(f"{salt}\n{value}".encode()).hexdigest()


def iter_trail(resources: Resources, tenant: str) -> Iterator[Item]:
    """Yield the entries of a tenant's trail, the oldest first."""
    table = resources.settings.bridges_table
    yield from resources.tables.query_items(table, trail_partition(tenant), min_sk="d#", max_sk="d#~")


@value_dataclass(frozen=True)
class TrailReport:
    """What the check of a trail has found.

    Attributes:
        entries: How many entries are unbroken from the first one on.
        hash: That of the last of them.
        broken_number: The number of the first entry that is wrong or missing; 0 if there is none.
        problem: What is wrong with it.
    """

    entries: int
    hash: str
    broken_number: int = 0
    problem: str = ""


def verify_trail(resources: Resources, tenant: str, expected_hash: str = "") -> TrailReport:
    """Check every link of a tenant's trail, from the first entry to the head.

    Args:
        tenant: The tenant.
        expected_hash: A hash that an earlier check has returned, and that the trail has to contain; empty for none.
    """
    # The head is read first: entries that are appended meanwhile lie behind it.
    head = _read_head(resources, tenant)
    reached = TrailHead()
    seen = {reached}
    for item in iter_trail(resources, tenant):
        if problem := _find_problem(item, reached):
            return TrailReport(reached.number, reached.hash, reached.number + 1, problem)
        reached = TrailHead(item["number"], item["hash"])
        seen.add(reached)
    if head == TrailHead() != reached:  # the first decision was made meanwhile, or the row is gone
        head = _read_head_behind(resources, tenant, reached)
    if problem := _find_problem_of_head(head, reached, seen):
        return TrailReport(reached.number, reached.hash, reached.number + 1, problem)
    assert head is not None
    if head != reached and _read_head_behind(resources, tenant, reached) == head:
        # Nothing was decided meanwhile, so no decision has moved the head when these entries were added.
        return TrailReport(head.number, head.hash, head.number + 1, "The entry lies behind the head of the trail.")
    if expected_hash and expected_hash not in {link.hash for link in seen}:
        return TrailReport(reached.number, reached.hash, reached.number, "The hash noted earlier is not in the trail.")
    return TrailReport(reached.number, reached.hash)


def _find_problem_of_head(head: TrailHead | None, reached: TrailHead, seen: Collection[TrailHead]) -> str:
    if head is None or head == TrailHead() != reached:
        return "The row that names the newest entry is missing, or cannot be read."
    return "" if head in seen else "The trail ends before its head, or the head names another entry."


def _read_head_behind(resources: Resources, tenant: str, reached: TrailHead) -> TrailHead | None:
    """Return the head once it is as far as an entry that was read, or as it stays.

    An entry and the head are written together, and a reader may see the one a moment before the other.
    """
    head = _read_head(resources, tenant)
    for _ in range(MAX_HEAD_READS):
        if head is None or head.number >= reached.number:
            break
        resources.clock.sleep(_HEAD_WAIT_SECONDS)
        head = _read_head(resources, tenant)
    return head


def _read_head(resources: Resources, tenant: str) -> TrailHead | None:
    """Return the head, one of an empty trail if no row is there, or None if the row cannot be read."""
    item = resources.tables.get_item_by_key(build_head_key(resources, tenant))
    if item and not (isinstance(item.get("number"), int) and isinstance(item.get("hash"), str)):
        return None
    return TrailHead.from_item(item)


def _find_problem(item: Item, before: TrailHead) -> str:
    """Return what is wrong with an entry. Whoever has damaged it may have left anything in its place."""
    try:
        return _find_broken_link(item, before)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return "The entry cannot be read: it was changed after it was written."


def _find_broken_link(item: Item, before: TrailHead) -> str:
    if item["number"] != before.number + 1 or item["sk"] != build_entry_sort_key(before.number + 1):
        return "The entry is missing."
    if item["previous"] != before.hash:
        return "The entry does not follow the one before it."
    if item["hash"] != compute_entry_hash(before.hash, item["data"]):
        return "The entry was changed after it was written."
    data = json.loads(item["data"])
    for name, kept in item.get("personal", {}).items():
        if data["committed"].get(name) != compute_commitment(kept["salt"], kept["value"]):
            return f"The member {name} was changed after it was written."
    return ""
