"""Uploads in a test: announced as a client does it, and put where the signed address points."""

import hashlib
import json
from typing import Any
from urllib.parse import unquote, urlsplit

from fermata.aws import uploads
from fermata.aws.desk import Desk
from fermata.aws.uploads import Kind
from fermata.words.caller import Caller


def announced(desk: Desk, kind: Kind, raw: bytes) -> uploads.Upload:
    return uploads.announce(desk, kind, len(raw), hashlib.sha256(raw).hexdigest())


def put(desk: Desk, caller: Caller, kind: Kind, raw: bytes, *, instead: bytes | None = None) -> str:
    """Its reference; `instead` is what is really put there."""
    upload = announced(desk, kind, raw)
    at = urlsplit(uploads.address(desk, caller, upload))
    key = unquote(at.path).removeprefix("/").removeprefix(f"{desk.settings.bucket}/")
    desk.blobs._client.put_object(Bucket=desk.settings.bucket, Key=key, Body=raw if instead is None else instead)
    return upload.ref


def put_json(desk: Desk, caller: Caller, value: Any) -> str:
    return put(desk, caller, "snapshot", json.dumps(value).encode())
