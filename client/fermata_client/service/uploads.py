"""Upload snapshots, images and recordings that are too large for a request, and reference them in the request instead.

The upload interface is decision 0110.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fermata_client.service.errors import InvalidResponseError
from fermata_client.service.json_types import JsonObject
from fermata_client.service.transport import Transport

MAX_REQUEST_BYTES = 4_500_000
"""Size of a request body as the platform counts it, with every quote escaped."""
MAX_FILES_UPLOAD_BYTES = 15_000_000
"""Of files of an agent that are uploaded together. The largest file, 10 MB, has 13.4 MB in Base64."""
MIN_UPLOADED_PART_BYTES = 1_000_000
"""Images and recordings of this size are uploaded: a prompt may have eight and four, too many for one request."""
SNAPSHOT_REUSE_SECONDS = 3600.0
"""How long an uploaded snapshot is referenced again. The service stores it for a day."""


@dataclass(frozen=True)
class _UploadedSnapshot:
    digest: str
    ref: str
    expires_at: float
    """On the clock of `Uploads`."""


class Uploads:
    """Uploads of one caller. It may be shared between threads: at worst a snapshot is uploaded twice."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        self._newest: _UploadedSnapshot | None = None

    def offload_snapshot(self, body: JsonObject) -> JsonObject:
        """Return the body, with `snapshotRef` in place of `snapshot` where it would be too large for one request."""
        snapshot = body.get("snapshot")
        if snapshot is None or _request_bytes(body) <= MAX_REQUEST_BYTES:
            return body
        rest = {name: value for name, value in body.items() if name != "snapshot"}
        return rest | {"snapshotRef": self.upload_snapshot(_encode_json(snapshot))}

    def offload_folders(self, body: JsonObject) -> JsonObject:
        """Return the body of a push of agents, with `folderUploads` in place of `folders` where they are too large."""
        folders = body.get("folders")
        if not folders or _request_bytes(body) <= MAX_REQUEST_BYTES:
            return body
        rest = {name: value for name, value in body.items() if name != "folders"}
        return rest | {"folderUploads": {name: self._upload_files(files) for name, files in folders.items()}}

    def _upload_files(self, files: list[JsonObject]) -> list[str]:
        parts = (_encode_json({"files": part}) for part in _split_files(files))
        return [self._upload("agentFiles", raw, hashlib.sha256(raw).hexdigest()) for raw in parts]

    def image_part(self, raw: bytes, mime_type: str) -> JsonObject:
        """Return the part of a prompt's `content` that shows this image, uploading a large one."""
        return self._make_part("image", raw, mime_type)

    def audio_part(self, raw: bytes, mime_type: str) -> JsonObject:
        """Return the part of a prompt's `content` that is this recording, uploading a large one."""
        return self._make_part("audio", raw, mime_type)

    def _make_part(self, kind: str, raw: bytes, mime_type: str) -> JsonObject:
        part = {"kind": kind, "mimeType": mime_type}
        if len(raw) >= MIN_UPLOADED_PART_BYTES:
            return part | {"uploadRef": self._upload(kind, raw, hashlib.sha256(raw).hexdigest())}
        return part | {"data": base64.b64encode(raw).decode()}

    def upload_snapshot(self, raw: bytes) -> str:
        """Upload JSON, and return its reference. What was uploaded last is not uploaded again."""
        digest = hashlib.sha256(raw).hexdigest()
        newest = self._newest
        if newest is not None and newest.digest == digest and self._clock() < newest.expires_at:
            return newest.ref
        ref = self._upload("snapshot", raw, digest)
        self._newest = _UploadedSnapshot(digest, ref, self._clock() + SNAPSHOT_REUSE_SECONDS)
        return ref

    def _upload(self, kind: str, raw: bytes, digest: str) -> str:
        response = self._transport.request_json("POST", "/uploads", {"kind": kind, "bytes": len(raw), "sha256": digest})
        ref, url, headers = (response.get(name) for name in ("ref", "url", "headers"))
        if not (isinstance(ref, str) and isinstance(url, str) and isinstance(headers, dict)):
            raise InvalidResponseError("The service did not say where to put an upload.")
        self._transport.upload(url, raw, headers)
        return ref


def _split_files(files: list[JsonObject]) -> Iterator[list[JsonObject]]:
    part: list[JsonObject] = []
    size = 0
    for file in files:
        file_size = len(_encode_json(file)) + 1
        if part and size + file_size > MAX_FILES_UPLOAD_BYTES:
            yield part
            part, size = [], 0
        part.append(file)
        size += file_size
    if part:
        yield part


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _request_bytes(body: JsonObject) -> int:
    text = _encode_json(body)
    return len(text) + text.count(b'"') + text.count(b"\\")
