"""Uploads in a test: announced as a client does it, and put where the signed address points."""

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
    """Its reference; `instead` is what is really put there."""
    upload = announce_test_upload(resources, kind, raw)
    at = urlsplit(uploads.presign_upload(resources, caller, upload))
    key = unquote(at.path).removeprefix("/").removeprefix(f"{resources.settings.bucket}/")
    resources.blobs._client.put_object(
        Bucket=resources.settings.bucket, Key=key, Body=raw if instead is None else instead
    )
    return upload.ref


def put_json_upload(resources: Resources, caller: Caller, value: Any) -> str:
    return put_upload(resources, caller, "snapshot", json.dumps(value).encode())
