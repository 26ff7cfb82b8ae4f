"""Record how many turns count for users and for the workspace, whenever one more begins to count."""

from collections.abc import Callable, Iterable

from tests.chaos.evidence import TurnsAtOnce
from tests.chaos.memory_aws.attribute_values import Item
from tests.chaos.memory_aws.tables import MemoryTable

COUNTS_SORT_KEY = "counts"
LEASE_PREFIX = "x#"
TENANT_INFIX = "#limits#tenant#"
USER_INFIX = "#limits#user#"


class TurnRecorder:
    """Watches a table besides those who watch it already."""

    def __init__(self, table: MemoryTable, get_now: Callable[[], float]) -> None:
        self.turns_at_once: list[TurnsAtOnce] = []
        self._table, self._get_now = table, get_now
        self._watch_before = table.on_change
        table.on_change = self._record_change

    def _record_change(self, old: Item | None, new: Item | None) -> None:
        if self._watch_before:
            self._watch_before(old, new)
        if new is None or new["sk"]["S"] != COUNTS_SORT_KEY:
            return
        if any(name.startswith(LEASE_PREFIX) for name in new.keys() - (old or {}).keys()):
            pk = new["pk"]["S"]
            if TENANT_INFIX in pk:
                self.turns_at_once.append(TurnsAtOnce("tenant", self._count(self._list_tenant_rows(new))))
            elif USER_INFIX in pk:
                self.turns_at_once.append(TurnsAtOnce("user", self._count([new])))

    def _list_tenant_rows(self, changed: Item) -> Iterable[Item]:
        yield changed
        for pk, items in self._table.partitions.items():
            if TENANT_INFIX in pk and pk != changed["pk"]["S"]:
                yield from (item for sort_key, item in items.items() if sort_key == COUNTS_SORT_KEY)

    def _count(self, items: Iterable[Item]) -> int:
        """Count the leases that no clock of the simulation takes for expired."""
        latest = self._get_now() + 60
        leases = [value for item in items for name, value in item.items() if name.startswith(LEASE_PREFIX)]
        return sum(int(value["N"]) > latest for value in leases)
