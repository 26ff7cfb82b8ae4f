"""A function behind a table's stream waits for its batching window, so that what comes together is handed on together.

Stock MiniStack hands every record on at once, alone, while the request that wrote it is still being answered.
"""

import time
from typing import Any

from ministack.services import lambda_svc

from local.emulator.patches.registry import patch_line

Json = dict[str, Any]
_since: dict[str, float] = {}
"""By mapping: when the first record of the batch that is being gathered was seen."""


def is_batch_open(mapping: Json, batch: list[Json]) -> bool:
    """Whether more records may join this batch."""
    name, window = mapping["UUID"], mapping.get("MaximumBatchingWindowInSeconds") or 0
    first = _since.setdefault(name, time.monotonic())
    if len(batch) < mapping.get("BatchSize", 100) and time.monotonic() - first < window:
        return True
    del _since[name]
    return False


patch_line(
    lambda_svc,
    "_poll_dynamodb_streams",
    "2b2460e933a9",
    "            if not batch:\n                continue\n",
    "            if not batch or _gathering(esm, batch):\n                continue\n",
    _gathering=is_batch_open,
)
