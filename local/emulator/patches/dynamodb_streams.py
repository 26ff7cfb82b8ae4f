"""Patch DynamoDB streams: batching windows, and streams that outlive the process.

Unpatched MiniStack invokes the function at once for every record, while the request that wrote it is still answered.
It keeps the position of each event source mapping, but not the records that the position counts, so that after a
restart the mapping waits for as many new records as it had seen before.
"""

import time
from typing import Any

from ministack.core.responses import AccountRegionScopedDict
from ministack.services import dynamodb, lambda_svc

from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions

Json = dict[str, Any]
STREAMS_KEY = "fermataStreams"
"""Member of the saved state that unpatched MiniStack does not have."""
_first_seen: dict[str, float] = {}
"""When the first record of the open batch was seen, by the UUID of the event source mapping."""


def is_batch_open(mapping: Json, batch: list[Json]) -> bool:
    """Return whether more records may join this batch: it is not full, and its window has not passed."""
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


pin_functions(lambda_svc, _iter_all_esms="7db06c0627a5")


@patch_function(dynamodb, "get_state", "ce90690a6033")
def get_state_with_streams(original: Function) -> Json:
    """Get the state of the tables, and of each stream the records that a mapping has not processed."""
    streams = AccountRegionScopedDict()
    for scoped_name in dynamodb._stream_records._data | dynamodb._stream_trimmed._data:
        trimmed_count = dynamodb._stream_trimmed.get_scoped(*scoped_name, 0)
        records = dynamodb._stream_records.get_scoped(*scoped_name) or []
        processed_count = min(max(0, _processed_position(scoped_name, trimmed_count) - trimmed_count), len(records))
        streams.set_scoped(
            *scoped_name, {"trimmed": trimmed_count + processed_count, "records": records[processed_count:]}
        )
    return dict(original()) | {STREAMS_KEY: streams}


@patch_function(dynamodb, "load_persisted_state", "6f58d9dc1e6e")
def load_state_with_streams(original: Function, data: Json) -> None:
    original(data)
    for scoped_name, stream in data.get(STREAMS_KEY, AccountRegionScopedDict()).all_items():
        dynamodb._stream_trimmed.set_scoped(*scoped_name, stream["trimmed"])
        dynamodb._stream_records.set_scoped(*scoped_name, stream["records"])


def continue_numbering() -> None:
    """Let a stream whose records were not kept go on at the position of its mapping, as before the restart."""
    for scoped_name in list(dynamodb._tables._data):
        trimmed_count = dynamodb._stream_trimmed.get_scoped(*scoped_name, 0)
        records = dynamodb._stream_records.get_scoped(*scoped_name) or []
        missing_count = max(_mapping_positions(scoped_name), default=0) - trimmed_count - len(records)
        if missing_count > 0:
            dynamodb._stream_trimmed.set_scoped(*scoped_name, trimmed_count + missing_count)


def _processed_position(scoped_name: tuple[str, str, str], trimmed_count: int) -> int:
    """Get the position that all mappings of the table's stream have reached. Without a mapping, none has."""
    return min(_mapping_positions(scoped_name), default=trimmed_count)


def _mapping_positions(scoped_name: tuple[str, str, str]) -> list[int]:
    table = dynamodb._tables.get_scoped(*scoped_name) or {}
    return [
        lambda_svc._dynamodb_stream_positions.get_scoped(account, region, mapping["UUID"], 0)
        for account, region, mapping in lambda_svc._iter_all_esms()
        if (account, region) == scoped_name[:2] and mapping.get("EventSourceArn") == table.get("LatestStreamArn")
    ]
