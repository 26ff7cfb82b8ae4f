"""Judge writes: each has a condition, and a copy of it that lands when everything is over changes nothing."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch

from tests.chaos.evidence import Evidence

EDITION = re.compile(r"#rollup#(\d+)#")
UNCONDITIONAL_WRITES = (
    ("bridges", "*#budget#*", "????-??*"),  # releases a hold: it subtracts what is there
    ("bridges", "*#turn#*", "w#*"),  # deletes the mark of an entry whose events were handed out
    ("usage", "*#rollup#*", "*"),  # deletes an edition that is over
)
"""Table, partition and sort key of rows that may be written without a condition, as decision 0173 lists them."""


def judge_landed_writes(evidence: Evidence) -> Iterator[str]:
    for write in evidence.landed_writes:
        shown = ", ".join(f"{table} {pk} {sk}" for table, pk, sk in write.rows)
        if not write.has_condition and not all(_may_lack_condition(row) for row in write.rows):
            yield f"a write has no condition: {shown}"
        changed = [row for row in write.changed_by_copy if not _is_of_an_edition_that_is_over(evidence, row)]
        if changed:
            yield f"a late copy of the write of {shown} changes {changed}"


def _is_of_an_edition_that_is_over(evidence: Evidence, row: tuple[str, str, str]) -> bool:
    """Return whether nobody reads a rollup any more. A consumer that was late may have written it."""
    current = next((int(item["current"]) for item in evidence.usage if item["sk"] == "edition"), 1)
    number = EDITION.search(row[1])
    return number is not None and int(number[1]) != current


def _may_lack_condition(row: tuple[str, str, str]) -> bool:
    return any(all(map(fnmatch, row, patterns)) for patterns in UNCONDITIONAL_WRITES)
