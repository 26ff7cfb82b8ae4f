"""Store which edition of a tenant's rollups is current and which one a rebuild is building (decision 0141).

Each change of the row names the version that it replaces. A copy of a write that arrives late therefore changes
nothing, and of two simultaneous rebuilds only the later one continues.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.domain.value_dataclass import value_dataclass

RollupLevel = Literal["day", "quarter"]
_Reading = TypeVar("_Reading")


@value_dataclass(frozen=True)
class RollupEdition:
    """Complete set of a tenant's rollups. A rebuild creates the next one (decision 0054)."""

    tenant: str
    number: int

    @property
    def partition_prefix(self) -> str:
        """How the partition keys of all its rows begin."""
        return f"t#{self.tenant}#rollup#{self.number}"

    def period_partition(self, level: RollupLevel) -> str:
        """Return the partition of its rollups by day or by quarter of an hour."""
        return f"{self.partition_prefix}#{level}"

    def activity_partition(self, conversation: str) -> str:
        """Return the partition that says in which days a conversation was active."""
        return f"{self.partition_prefix}#chat#{conversation}"

    def counted_mark_partition(self, key: str) -> str:
        """Return the partition of the mark that a ledger row is counted, by the row's key."""
        return f"{self.partition_prefix}#counted#{key}"


@value_dataclass(frozen=True)
class EditionRow:
    """The stored numbers of a tenant's editions.

    Attributes:
        last: The number that the last rebuild took. A number is never used again, so an interrupted rebuild leaves
            nothing behind in the next one's edition.
        building: The edition into which the stream also counts, if any.
        version: Version of the stored row; 0 when nothing is stored.
        rebuild: Id of the rebuild that wrote the row.
    """

    tenant: str
    current: int = 1
    last: int = 1
    building: int | None = None
    version: int = 0
    rebuild: str = ""

    def to_item(self) -> Item:
        """Return the item of the usage table."""
        numbers = {"current": self.current, "last": self.last}
        numbers |= {"building": self.building} if self.building is not None else {}
        return _edition_key(self.tenant) | {"v": 1, "version": self.version, "rebuild": self.rebuild} | numbers


def _edition_key(tenant: str) -> dict[str, Any]:
    return {"pk": f"t#{tenant}#rollup", "sk": "edition"}


def read_edition_row(resources: Resources, tenant: str) -> EditionRow:
    """Return the row that says which edition of a tenant's rollups counts; the first edition while there is no row."""
    item = resources.tables.get_item(resources.settings.usage_table, **_edition_key(tenant))
    if item is None:
        return EditionRow(tenant)
    current: int = item["current"]
    # Rows from before decision 0141 have neither a version nor a rebuild.
    version, rebuild = item.get("version", 0), item.get("rebuild", "")
    return EditionRow(tenant, current, item.get("last", current), item.get("building"), version, rebuild)


def read_editions(resources: Resources, tenant: str) -> list[RollupEdition]:
    """Return the current edition and, after it, the one that is being built, if any."""
    row = read_edition_row(resources, tenant)
    numbers = [row.current, *([row.building] if row.building is not None else [])]
    return [RollupEdition(tenant, number) for number in numbers]


def read_from_current_edition(resources: Resources, tenant: str, read: Callable[[RollupEdition], _Reading]) -> _Reading:
    """Return what `read` returns for the current edition.

    When a rebuild switched to another edition meanwhile, it may have deleted what was being read: then read that one.
    """
    edition = read_editions(resources, tenant)[0]
    while True:
        value = read(edition)
        latest = read_editions(resources, tenant)[0]
        if latest == edition:
            return value
        edition = latest


def begin_edition(resources: Resources, tenant: str) -> EditionRow:
    """Take the next number for a new edition. Nothing is counted into an edition that is being built until now.

    Raises:
        Conflict: Another rebuild began at the same time.
    """
    row = read_edition_row(resources, tenant)
    return store_edition_row(resources, replace(row, last=row.last + 1, building=None, rebuild=new_id()))


def store_edition_row(resources: Resources, row: EditionRow) -> EditionRow:
    """Store a row in place of the version that it was read or written as, and return it with its new version.

    Raises:
        Conflict: Another rebuild has changed the row.
    """
    changed = replace(row, version=row.version + 1)
    condition = "#version = :was" if row.version else "attribute_not_exists(#version)"
    values = {":was": row.version} if row.version else {}
    table = resources.settings.usage_table
    put = Put(table, changed.to_item(), condition=condition, values=values, names={"#version": "version"})
    try:
        resources.tables.write_items(put)
    except ConditionFailed as error:
        if error.item != put.item:  # otherwise this write was repeated, because its response was lost
            raise Conflict(f"Another rebuild of the rollups of {row.tenant} has begun, and goes on.") from error
    return changed
