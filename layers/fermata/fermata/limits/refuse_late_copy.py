"""Let the write of a use that stands beside no log entry refuse its own copy, however late that lands.

    at#<slot>   when the latest of the uses that share the slot was written (epoch microseconds); only grows

A write sets its slot to its own time, on condition that the slot has an earlier one. So it can land once. Other uses
that have read the same row are not in its way, unless they share the slot and were written later (decision 0402).
"""

import zlib

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.is_count import is_count
from fermata.limits.limit_keys import TENANT_SHARDS

TIME_PREFIX = "at#"
TIME_SLOTS = 32
"""Times of a row. The more there are, the seldomer two uses at once share one."""


def refuse_late_copy(update: CountRowUpdate, item: Item, use_id: str, now: float) -> None:
    """Make a write one that is refused once it has landed.

    Args:
        update: The write of a row.
        item: The row as it was read.
        use_id: The id of the use, which selects the slot.
        now: When the write is built (epoch seconds).
    """
    name = f"{TIME_PREFIX}{zlib.crc32(use_id.encode()) // TENANT_SHARDS % TIME_SLOTS}"
    stored = item.get(name)
    now_us = int(now * 1_000_000)
    if name in item and not is_count(stored):
        update.require_as_read(item, [name])
        update.set(name, now_us)
        return
    time_us = max(now_us, stored + 1) if is_count(stored) else now_us
    update.require_at_most(name, time_us - 1)
    update.set(name, time_us)
