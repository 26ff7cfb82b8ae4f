"""What no request can hold is uploaded first, and the request names it: large snapshots, large images."""

import base64
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from fermata_client.service.errors import InvalidResponseError
from fermata_client.service.transport import Transport

Json = dict[str, Any]

MAX_REQUEST_BYTES = 4_500_000
"""Bytes of a body as the platform counts them, with every quote escaped."""
MIN_UPLOADED_IMAGE_BYTES = 1_000_000
"""Bytes from which an image is uploaded: eight of this size would not fit into one request."""
SNAPSHOT_REUSE_SECONDS = 3600.0
"""For so long the same snapshot is not uploaded again; the service keeps it for a day."""


class Uploads:
    """Threads may share it: at the worst the same thing is uploaded twice."""

    def __init__(self, way: Transport, now: Callable[[], float] = time.monotonic) -> None:
        self._way = way
        self._now = now
        self._last = ("", "", 0.0)
        """Digest and reference of the newest snapshot, and until when it is used again."""

    def offload_snapshot(self, body: Json) -> Json:
        """The body itself, or the same with its snapshot uploaded, when they do not fit into one request together."""
        snapshot = body.get("snapshot")
        if snapshot is None or _weight(body) <= MAX_REQUEST_BYTES:
            return body
        rest = {name: value for name, value in body.items() if name != "snapshot"}
        return rest | {"snapshotRef": self._snapshot(_bytes(snapshot))}

    def image_part(self, raw: bytes, mime_type: str) -> Json:
        """The part of a prompt's `content` that shows this image."""
        part = {"kind": "image", "mimeType": mime_type}
        if len(raw) >= MIN_UPLOADED_IMAGE_BYTES:
            return part | {"uploadRef": self._put("image", raw, hashlib.sha256(raw).hexdigest())}
        return part | {"data": base64.b64encode(raw).decode()}

    def _snapshot(self, raw: bytes) -> str:
        digest = hashlib.sha256(raw).hexdigest()
        known, ref, until = self._last
        if known == digest and self._now() < until:
            return ref
        ref = self._put("snapshot", raw, digest)
        self._last = (digest, ref, self._now() + SNAPSHOT_REUSE_SECONDS)
        return ref

    def _put(self, kind: str, raw: bytes, digest: str) -> str:
        told = self._way.request_json("POST", "/uploads", {"kind": kind, "bytes": len(raw), "sha256": digest})
        ref, url, headers = told.get("ref"), told.get("url"), told.get("headers")
        if not (isinstance(ref, str) and isinstance(url, str) and isinstance(headers, dict)):
            raise InvalidResponseError("The service did not say where to put an upload.")
        self._way.upload(url, raw, headers)
        return ref


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _weight(body: Json) -> int:
    text = _bytes(body)
    return len(text) + text.count(b'"') + text.count(b"\\")
