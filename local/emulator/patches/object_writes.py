"""Patch S3: write the metadata of an object ahead of its content, so that a kill cannot part them (decision 0287).

The file that was written ahead becomes the one beside the content. Unpatched MiniStack looks up the place of the object
on the disk again for each of its files.
"""

import json
import os
from pathlib import Path
from typing import Any

from ministack.core.responses import get_account_id
from ministack.services import s3

from local.emulator.object_files import METADATA_SUFFIX, NEXT_METADATA_SUFFIX
from local.emulator.patches.registry import Function, patch_function, pin_functions

pin_functions(
    s3,
    _object_disk_path="0a7ed55714d9",
    _object_meta_from_record="e255160d5f19",
    _key_history_meta="455af1502662",
    _atomic_write="24958052a85f",
    _other_key_disk_path="99ecdb982d1e",
    _remove_key_files="238891587269",
)


@patch_function(s3, "_persist_object", "cb32b6ae8706")
def persist_object(original: Function, bucket: str, key: str, record: Any) -> None:
    content = s3._object_disk_path(bucket, key)
    if content is None or not isinstance(record, dict) or record.get("body") is None:
        original(bucket, key, record)
        return
    metadata = {**s3._object_meta_from_record(record), **s3._key_history_meta(bucket, key), "key": key}
    next_metadata = Path(content + NEXT_METADATA_SUFFIX)
    write_private_file(next_metadata, json.dumps(metadata).encode())
    s3._atomic_write(content, record["body"])
    next_metadata.replace(content + METADATA_SUFFIX)
    record["body"] = None  # it is read from the file
    bucket_folder = f"{s3.DATA_DIR}/{get_account_id()}/{bucket}"
    s3._remove_key_files(s3._other_key_disk_path(bucket_folder, key, content))


def write_private_file(path: Path, content: bytes) -> None:
    """Write a file that only this user may read, in a folder that may not exist yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
