"""Patch S3: write the metadata of an object ahead of its content, so that a kill cannot part them (decision 0287)."""

import json
from pathlib import Path
from typing import Any

from ministack.services import s3

from local.emulator.object_files import NEXT_METADATA_SUFFIX
from local.emulator.patches.registry import Function, patch_function, pin_functions

pin_functions(
    s3,
    _object_disk_path="0a7ed55714d9",
    _object_meta_from_record="e255160d5f19",
    _key_history_meta="455af1502662",
)


@patch_function(s3, "_persist_object", "cb32b6ae8706")
def persist_object(original: Function, bucket: str, key: str, record: Any) -> None:
    content = s3._object_disk_path(bucket, key)
    if content is None or not isinstance(record, dict) or record.get("body") is None:
        original(bucket, key, record)
        return
    metadata = {**s3._object_meta_from_record(record), **s3._key_history_meta(bucket, key), "key": key}
    next_metadata = Path(content + NEXT_METADATA_SUFFIX)
    next_metadata.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    next_metadata.touch(mode=0o600)
    next_metadata.write_text(json.dumps(metadata))
    original(bucket, key, record)
    next_metadata.unlink()
