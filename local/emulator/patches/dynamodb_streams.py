"""Patch DynamoDB streams: collect records during the batching window of the event source mapping.

Unpatched MiniStack invokes the function at once for every record, while the request that wrote it is still answered.
"""

import time
from typing import Any

from ministack.services import lambda_svc

from local.emulator.patches.registry import patch_line

Json = dict[str, Any]
_first_seen: dict[str, float] = {}
"""When the first record of the open batch was seen, by the UUID of the event source mapping."""


def is_batch_open(mapping: Json, batch: list[Json]) -> bool:
    """Whether more records may join this batch: it is not full, and its window has not passed."""
    mapping_id = mapping["UUID"]
    window_seconds = mapping.get("MaximumBatchingWindowInSeconds") or 0
    first_seen = _first_seen.setdefault(mapping_id, time.monotonic())
    if len(batch) < mapping.get("BatchSize", 100) and time.monotonic() - first_seen < window_seconds:
        return True
    del _first_seen[mapping_id]
    return False


patch_line(
    lambda_svc,
    "_poll_dynamodb_streams",
    "2b2460e933a9",
    "            if not batch:\n                continue\n",
    "            if not batch or _is_batch_open(esm, batch):\n                continue\n",
    _is_batch_open=is_batch_open,
)
