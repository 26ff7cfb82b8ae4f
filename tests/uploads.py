"""Announce uploads as a client does, and put them where the presigned URL points."""

import hashlib
import json
from typing import Any
from urllib.parse import unquote, urlsplit

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.aws.uploads import UploadKind
from fermata.domain.caller import Caller


def announce_test_upload(resources: Resources, kind: UploadKind, raw: bytes) -> uploads.Upload:
    return uploads.announce_upload(resources, kind, len(raw), hashlib.sha256(raw).hexdigest())


def put_upload(
    resources: Resources, caller: Caller, kind: UploadKind, raw: bytes, *, instead: bytes | None = None
) -> str:
    """Upload `raw`, or `instead` of what was announced; returns the reference."""
    upload = announce_test_upload(resources, kind, raw)
    url = urlsplit(uploads.presign_upload(resources, caller, upload))
    key = unquote(url.path).removeprefix("/").removeprefix(f"{resources.settings.bucket}/")
    resources.blobs._client.put_object(
        Bucket=resources.settings.bucket, Key=key, Body=raw if instead is None else instead
    )
    return upload.ref


def put_json_upload(resources: Resources, caller: Caller, value: Any) -> str:
    return put_upload(resources, caller, "snapshot", json.dumps(value).encode())
