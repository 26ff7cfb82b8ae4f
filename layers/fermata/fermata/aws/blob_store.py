"""Anything large lies in one bucket, under the name of its own content.

Keys: `turns/<tenant>/<turn>/<sha256>` expires with the turn, `conversations/<tenant>/<id>/<sha256>` lives as long
as the conversation. A blob is put again, which renews its age, unless whoever puts it knows that it need not be.
What callers put here themselves lies under `uploads/` (uploads.py).
"""

import hashlib
import json
import zlib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MAX_PARALLEL_BLOB_READS = 8
BLOB_THRESHOLD_BYTES = 32 * 1024
"""Bytes of JSON from which a block or an event goes to the bucket before its row is written (design §4)."""
S3_PARAMETERS_BY_HEADER = {
    "content-length": "ContentLength",
    "content-type": "ContentType",
    "x-amz-checksum-sha256": "ChecksumSHA256",
}
"""Headers that can be signed, as the client calls them."""
GZIP_MAGIC = b"\x1f\x8b"
"""How it begins; no JSON does."""
GZIP_WINDOW_BITS, FASTEST_COMPRESSION = 31, 1


class CompressedJson(NamedTuple):
    """Compressed JSON, with the digest of what it was, by which it is found again."""

    digest: str
    body: bytes


def compress_json(text: bytes) -> CompressedJson:
    return CompressedJson(hashlib.sha256(text).hexdigest(), zlib.compress(text, FASTEST_COMPRESSION, GZIP_WINDOW_BITS))


class BlobStore:
    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put_json(self, folder: str, value: Any, *, stored_key: str = "") -> str:
        """Store a JSON value under `folder`; returns its key. `known`: a key whose age needs no renewal."""
        return self.put_bytes(folder, _json(value), "application/json", stored_key=stored_key)

    def put_compressed_json(self, folder: str, value: Any, *, stored_key: str = "") -> str:
        """Like `put`, compressed: for what is large and seldom read. `value` may be Packed already."""
        if not isinstance(value, CompressedJson):
            text = _json(value)
            if f"{folder}/{hashlib.sha256(text).hexdigest()}" == stored_key:
                return stored_key
            value = compress_json(text)
        key = f"{folder}/{value.digest}"
        if key != stored_key:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=value.body,
                ContentType="application/json",
                ContentEncoding="gzip",
            )
        return key

    def put_bytes(self, folder: str, body: bytes, mime_type: str, *, stored_key: str = "") -> str:
        """Store bytes as they are under `folder`; returns their key."""
        key = f"{folder}/{hashlib.sha256(body).hexdigest()}"
        if key == stored_key:
            return key
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=mime_type)
        return key

    def get_json(self, key: str) -> Any:
        """The JSON value, compressed or not."""
        body = self.get_bytes(key)
        if body.startswith(GZIP_MAGIC):
            body = zlib.decompress(body, GZIP_WINDOW_BITS)
        return json.loads(body)

    def get_bytes(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def get_bytes_by_key(self, keys: Collection[str]) -> dict[str, bytes]:
        """Many at once; each takes a request of its own, so several are under way together."""
        wanted = sorted(set(keys))
        if len(wanted) < 2:
            return {key: self.get_bytes(key) for key in wanted}
        with ThreadPoolExecutor(min(MAX_PARALLEL_BLOB_READS, len(wanted)), thread_name_prefix="blobs") as pool:
            return dict(zip(wanted, pool.map(self.get_bytes, wanted), strict=True))

    def presign_put(self, key: str, headers: dict[str, str], seconds: int) -> str:
        """Where anybody may put exactly one thing, once or again, for so long: what these headers describe."""
        members = {S3_PARAMETERS_BY_HEADER[name]: value for name, value in headers.items()}
        return self._client.generate_presigned_url(
            "put_object", Params={"Bucket": self._bucket, "Key": key, **members}, ExpiresIn=seconds
        )

    def open_stream(self, key: str) -> tuple[int, Any] | None:
        """How many bytes lie there, and a stream of them; None when nothing does.

        Who may not list the bucket is told that access is denied where nothing is.
        """
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "AccessDenied"):
                return None
            raise
        return found["ContentLength"], found["Body"]

    def delete_folder(self, folder: str) -> int:
        """Delete everything under `folder`, a thousand keys a request; returns how many there were."""
        removed = 0
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{folder}/"):
            found = [{"Key": entry["Key"]} for entry in page.get("Contents", [])]
            if found:
                self._delete(found)
            removed += len(found)
        return removed

    def _delete(self, found: list[Any]) -> None:
        answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": found, "Quiet": True})
        for error in answer.get("Errors", []):
            raise RuntimeError(f"S3 did not delete {error.get('Key')}: {error.get('Code')} {error.get('Message')}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def turn_folder(tenant: str, turn: str) -> str:
    return f"turns/{tenant}/{turn}"


def conversation_folder(tenant: str, conversation: str) -> str:
    return f"conversations/{tenant}/{conversation}"
