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

AT_ONCE = 8
LARGE = 32 * 1024
"""Bytes of JSON from which a block or an event goes to the bucket before its row is written (design §4)."""
PUT_MEMBERS = {
    "content-length": "ContentLength",
    "content-type": "ContentType",
    "x-amz-checksum-sha256": "ChecksumSHA256",
}
"""Headers that can be signed, as the client calls them."""
GZIP = b"\x1f\x8b"
"""How it begins; no JSON does."""
GZIP_BITS, FAST = 31, 1


class Packed(NamedTuple):
    """Compressed JSON, with the digest of what it was, by which it is found again."""

    digest: str
    body: bytes


def pack(text: bytes) -> Packed:
    return Packed(hashlib.sha256(text).hexdigest(), zlib.compress(text, FAST, GZIP_BITS))


class Blobs:
    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, folder: str, value: Any, *, known: str = "") -> str:
        """Store a JSON value under `folder`; returns its key. `known`: a key whose age needs no renewal."""
        return self.put_bytes(folder, _json(value), "application/json", known=known)

    def put_packed(self, folder: str, value: Any, *, known: str = "") -> str:
        """Like `put`, compressed: for what is large and seldom read. `value` may be Packed already."""
        if not isinstance(value, Packed):
            text = _json(value)
            if f"{folder}/{hashlib.sha256(text).hexdigest()}" == known:
                return known
            value = pack(text)
        key = f"{folder}/{value.digest}"
        if key != known:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=value.body,
                ContentType="application/json",
                ContentEncoding="gzip",
            )
        return key

    def put_bytes(self, folder: str, body: bytes, mime_type: str, *, known: str = "") -> str:
        """Store bytes as they are under `folder`; returns their key."""
        key = f"{folder}/{hashlib.sha256(body).hexdigest()}"
        if key == known:
            return key
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=mime_type)
        return key

    def get(self, key: str) -> Any:
        """The JSON value, compressed or not."""
        body = self.get_bytes(key)
        if body.startswith(GZIP):
            body = zlib.decompress(body, GZIP_BITS)
        return json.loads(body)

    def get_bytes(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def get_all(self, keys: Collection[str]) -> dict[str, bytes]:
        """Many at once; each takes a request of its own, so several are under way together."""
        wanted = sorted(set(keys))
        if len(wanted) < 2:
            return {key: self.get_bytes(key) for key in wanted}
        with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), thread_name_prefix="blobs") as pool:
            return dict(zip(wanted, pool.map(self.get_bytes, wanted), strict=True))

    def address_for_put(self, key: str, headers: dict[str, str], seconds: int) -> str:
        """Where anybody may put exactly one thing, once or again, for so long: what these headers describe."""
        members = {PUT_MEMBERS[name]: value for name, value in headers.items()}
        return self._client.generate_presigned_url(
            "put_object", Params={"Bucket": self._bucket, "Key": key, **members}, ExpiresIn=seconds
        )

    def find(self, key: str) -> tuple[int, Any] | None:
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

    def remove_folder(self, folder: str) -> int:
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
