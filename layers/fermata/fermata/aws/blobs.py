"""Anything large lies in one bucket, under the name of its own content.

Keys: `turns/<tenant>/<turn>/<sha256>` expires with the turn, `conversations/<tenant>/<id>/<sha256>` lives as long
as the conversation. A blob is put again, which renews its age, unless whoever puts it knows that it need not be.
"""

import hashlib
import json
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

AT_ONCE = 8
LARGE = 32 * 1024
"""Bytes of JSON from which a block or an event goes to the bucket before its row is written (design §4)."""


class Blobs:
    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, folder: str, value: Any, *, known: str = "") -> str:
        """Store a JSON value under `folder`; returns its key. `known`: a key whose age needs no renewal."""
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
        return self.put_bytes(folder, body, "application/json", known=known)

    def put_bytes(self, folder: str, body: bytes, mime_type: str, *, known: str = "") -> str:
        """Store bytes as they are under `folder`; returns their key."""
        key = f"{folder}/{hashlib.sha256(body).hexdigest()}"
        if key == known:
            return key
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=mime_type)
        return key

    def get(self, key: str) -> Any:
        return json.loads(self.get_bytes(key))

    def get_bytes(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def get_all(self, keys: Collection[str]) -> dict[str, bytes]:
        """Many at once; each takes a request of its own, so several are under way together."""
        wanted = sorted(set(keys))
        if len(wanted) < 2:
            return {key: self.get_bytes(key) for key in wanted}
        with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), thread_name_prefix="blobs") as pool:
            return dict(zip(wanted, pool.map(self.get_bytes, wanted), strict=True))

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


def turn_folder(tenant: str, turn: str) -> str:
    return f"turns/{tenant}/{turn}"


def conversation_folder(tenant: str, conversation: str) -> str:
    return f"conversations/{tenant}/{conversation}"
