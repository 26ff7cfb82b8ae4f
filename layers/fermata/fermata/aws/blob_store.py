"""Store large values in one S3 bucket under content-addressed keys.

`turns/<tenant>/<turn>/<sha256>` expires with the turn, and so do the snapshots that its user has sent,
`turns/<tenant>/user.<digest>/<conversation or turn>/…` (decision 0298); `conversations/<tenant>/<id>/<sha256>` lives
as long as the conversation (decision 0014); `agents/<tenant>/…` lives as long as the tenant. Storing a blob again
renews its age. Clients put their uploads under `uploads/` (aws/uploads.py).
"""

import hashlib
import json
import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import ClientError
from pydantic_core import from_json

from fermata.aws.clock import Clock

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

BLOB_THRESHOLD_BYTES = 32 * 1024
"""A block or event whose JSON is at least this large is stored as a blob; its row keeps only the key."""
STORED_FOLDERS = ("conversations", "turns", "agents", "content", "uploads", "exports")
"""With these begin all keys, and a tenant follows. What a tenant stores is erased in each of them."""
_MAX_PARALLEL_READS = 8
_MAX_DELETED = 1000
_S3_PARAMETERS_BY_HEADER = {
    "content-length": "ContentLength",
    "content-type": "ContentType",
    "if-none-match": "IfNoneMatch",
    "x-amz-checksum-sha256": "ChecksumSHA256",
}
_GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of gzip data. No JSON text starts with them."""
_GZIP_WINDOW_BITS = 31
_FASTEST_LEVEL = 1


class ObjectVersion(NamedTuple):
    """A version of an object, or a mark that the object was deleted."""

    key: str
    version_id: str


class CompressedJson(NamedTuple):
    """Gzipped JSON and the SHA-256 of the uncompressed text, which becomes its key."""

    digest: str
    body: bytes


def compress_json(text: bytes) -> CompressedJson:
    """Compress JSON text ahead of `put_compressed_json`, when its digest is needed before it is stored.

    Args:
        text: The UTF-8 JSON text.
    """
    return CompressedJson(_hex_digest(text), zlib.compress(text, _FASTEST_LEVEL, _GZIP_WINDOW_BITS))


class BlobStore:
    """One bucket. Keys are `<folder>/<sha256 of the content>`."""

    def __init__(self, client: "S3Client", bucket: str, clock: Clock) -> None:
        self._client, self._bucket, self._clock = client, bucket, clock

    def put_json(self, folder: str, value: Any, *, stored_key: str = "") -> str:
        """Store a JSON value.

        Args:
            stored_key: A key whose blob is young enough to keep. The blob is not stored again if it has this key.

        Returns:
            The blob's key.
        """
        return self.put_bytes(folder, encode_json(value), "application/json", stored_key=stored_key)

    def put_compressed_json(self, folder: str, value: Any, *, stored_key: str = "") -> str:
        """Store a JSON value compressed, which pays for large values that are rarely read (decision 0113).

        Args:
            value: A JSON value, or a CompressedJson that is stored as it is.
            stored_key: As in `put_json`.
        """
        if not isinstance(value, CompressedJson):
            text = encode_json(value)
            # The key is that of the uncompressed text, so an unchanged value is found before it is compressed.
            if build_blob_key(folder, text) == stored_key:
                return stored_key
            value = compress_json(text)
        key = f"{folder}/{value.digest}"
        if key != stored_key:
            self._client.put_object(
                Bucket=self._bucket,
                Key=check_folder(key),
                Body=value.body,
                ContentType="application/json",
                ContentEncoding="gzip",
            )
        return key

    def put_bytes(self, folder: str, body: bytes, mime_type: str, *, stored_key: str = "") -> str:
        """Store bytes as they are.

        Args:
            folder: The part of the key before the digest; see `turn_folder` and `conversation_folder`.
            body: The content.
            mime_type: The `Content-Type` with which S3 serves it.
            stored_key: As in `put_json`.

        Returns:
            The blob's key.
        """
        key = build_blob_key(folder, body)
        if key != stored_key:
            self._client.put_object(Bucket=self._bucket, Key=check_folder(key), Body=body, ContentType=mime_type)
        return key

    def get_json(self, key: str) -> Any:
        """Read a JSON value, compressed or not."""
        return _parse_json(self.get_bytes(key))

    def find_json(self, key: str) -> Any:
        """Read a JSON value, compressed or not, or return None if there is no such object."""
        opened = self.open_stream(key)
        return None if opened is None else _parse_json(opened[1].read())

    def get_bytes(self, key: str) -> bytes:
        """Read a blob as it is stored. A missing one raises botocore's ClientError."""
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def get_bytes_by_key(self, keys: Collection[str]) -> dict[str, bytes]:
        """Read several blobs in parallel."""
        distinct_keys = sorted(set(keys))
        if len(distinct_keys) < 2:
            return {key: self.get_bytes(key) for key in distinct_keys}
        bodies = self._clock.map_in_threads(self.get_bytes, distinct_keys, _MAX_PARALLEL_READS)
        return dict(zip(distinct_keys, bodies, strict=True))

    def presign_put(self, key: str, headers: dict[str, str], seconds: int) -> str:
        """Return a URL that accepts a PUT with exactly these headers. Makes no request.

        Args:
            key: Where the PUT stores its body.
            headers: The headers that the PUT must have, by their lower-case names.
            seconds: How long the URL is valid.
        """
        parameters = {_S3_PARAMETERS_BY_HEADER[name]: value for name, value in headers.items()}
        return self._client.generate_presigned_url(
            "put_object", Params={"Bucket": self._bucket, "Key": check_folder(key), **parameters}, ExpiresIn=seconds
        )

    def open_stream(self, key: str) -> tuple[int, Any] | None:
        """Return the object's size in bytes and a stream of its content, or None if there is no such object."""
        try:
            response = self._client.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            # S3 answers AccessDenied for a missing key to a role that may not list the bucket (decision 0110).
            if error.response["Error"]["Code"] in ("NoSuchKey", "AccessDenied"):
                return None
            raise
        return response["ContentLength"], response["Body"]

    def get_sizes(self, keys: Collection[str]) -> dict[str, int]:
        """Return how many bytes objects have, without reading them. Those that do not exist are left out."""
        distinct_keys = sorted(set(keys))
        if len(distinct_keys) < 2:
            found = [self._find_size(key) for key in distinct_keys]
        else:
            found = self._clock.map_in_threads(self._find_size, distinct_keys, _MAX_PARALLEL_READS)
        return {key: size for key, size in zip(distinct_keys, found, strict=True) if size is not None}

    def _find_size(self, key: str) -> int | None:
        try:
            return int(self._client.head_object(Bucket=self._bucket, Key=key)["ContentLength"])
        except ClientError as error:
            # Without a body, S3 answers with the status only; and 403 to a role that may not list (decision 0110).
            if error.response["Error"]["Code"] in ("404", "403"):
                return None
            raise

    def delete_folder(self, folder: str) -> int:
        """Delete every object under `folder`, a thousand per request. Former versions stay for the recovery time.

        Returns:
            The number of deleted objects.
        """
        count = 0
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{folder}/"):
            keys = [{"Key": entry["Key"]} for entry in page.get("Contents", [])]
            if keys:
                self._delete(keys)
            count += len(keys)
        return count

    def erase_folder(self, folder: str) -> int:
        """Delete every object under `folder` in all its versions, also those that are deleted already, for good.

        Returns:
            The number of deleted versions and marks of deletion.
        """
        count = 0
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=f"{folder}/")
        for page in pages:
            entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            if entries:
                self._delete([{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries])
            count += len(entries)
        return count

    def list_versions(self, folder: str) -> list[ObjectVersion]:
        """Return every version and every mark of deletion of the objects under `folder`."""
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=f"{folder}/")
        entries = [entry for page in pages for entry in (*page.get("Versions", []), *page.get("DeleteMarkers", []))]
        return [ObjectVersion(entry["Key"], entry["VersionId"]) for entry in entries]

    def erase_versions(self, versions: Sequence[ObjectVersion]) -> int:
        """Delete versions and marks of deletion for good, a thousand per request; return how many there were."""
        for start in range(0, len(versions), _MAX_DELETED):
            few = versions[start : start + _MAX_DELETED]
            self._delete([{"Key": version.key, "VersionId": version.version_id} for version in few])
        return len(versions)

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders that are directly under `folder`."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=f"{folder}/", Delimiter="/"
        )
        found = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", [])]
        return [prefix.rstrip("/").rpartition("/")[2] for prefix in found]

    def list_keys(self, folder: str) -> list[str]:
        """Return the keys of all objects under `folder`."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{folder}/")
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def delete_old_keys(self, folder: str, kept: Collection[str], before: float) -> int:
        """Delete the objects under `folder` that were stored before an instant and are not among those that are kept.

        Args:
            folder: The folder.
            kept: Keys.
            before: The instant, in seconds since 1970.

        Returns:
            The number of deleted objects.
        """
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{folder}/")
        entries = [entry for page in pages for entry in page.get("Contents", [])]
        old = [entry["Key"] for entry in entries if entry["LastModified"].timestamp() < before]
        gone = [{"Key": key} for key in old if key not in kept]
        for start in range(0, len(gone), _MAX_DELETED):
            self._delete(gone[start : start + _MAX_DELETED])
        return len(gone)

    def put_file(self, key: str, body: bytes, mime_type: str) -> None:
        """Store bytes under a key of the caller's choice, in place of what is there.

        Args:
            key: The whole key, with its folder.
            body: The bytes, which need not be text.
            mime_type: The content type with which they are downloaded.
        """
        self._client.put_object(Bucket=self._bucket, Key=check_folder(key), Body=body, ContentType=mime_type)

    def presign_get(self, key: str, seconds: int, *, is_attachment: bool = False) -> str:
        """Return a URL from which `key` can be downloaded for `seconds`. Makes no request.

        Args:
            key: The object.
            seconds: How long the URL is valid.
            is_attachment: Whether a browser that opens the URL saves the file.
        """
        parameters = {"Bucket": self._bucket, "Key": key}
        if is_attachment:
            parameters["ResponseContentDisposition"] = "attachment"
        return self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds)

    def _delete(self, keys: list[Any]) -> None:
        response = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
        for error in response.get("Errors", []):
            raise RuntimeError(f"S3 did not delete {error.get('Key')}: {error.get('Code')} {error.get('Message')}")


def _parse_json(body: bytes) -> Any:
    if body.startswith(_GZIP_MAGIC):
        body = zlib.decompress(body, _GZIP_WINDOW_BITS)
    try:
        # It decodes no text of the whole, which one emoji makes four times as large.
        return from_json(body, cache_strings="keys")
    except ValueError:  # a lone surrogate
        return json.loads(body)


def check_folder(key: str) -> str:
    """Return a key or a folder that an erasure finds.

    Raises:
        ValueError: It is in none of the folders.
    """
    if key.partition("/")[0] not in STORED_FOLDERS:
        raise ValueError(f"{key} is in none of {', '.join(STORED_FOLDERS)}.")
    return key


def turn_folder(tenant: str, turn: str) -> str:
    """Return the folder of blobs that expire with a turn."""
    return f"turns/{tenant}/{turn}"


def snapshots_folder(tenant: str, user: str) -> str:
    """Return the folder of the snapshots that a user has sent, also with requests that were refused (decision 0298).

    It names the user by a digest. No id of a turn contains a point.
    """
    return f"turns/{tenant}/user.{hashlib.sha256(user.encode()).hexdigest()[:32]}"


def prompt_folder(tenant: str, user: str, conversation: str, turn: str) -> str:
    """Return the folder of what a prompt brings, before it is known whether its turn starts.

    Args:
        tenant: The tenant's name.
        user: The id of the user who sends it.
        conversation: The id of the conversation, as the prompt names it.
        turn: The id that the turn has if it starts.
    """
    return f"{snapshots_folder(tenant, user)}/{conversation}/{turn}"


def earlier_prompts_folder(tenant: str, conversation: str) -> str:
    """Return where the snapshots of a conversation's prompts were stored before decision 0298."""
    return f"turns/{tenant}/{conversation}"


def conversation_folder(tenant: str, conversation: str) -> str:
    """Return the folder of blobs that are deleted with a conversation."""
    return f"conversations/{tenant}/{conversation}"


def encode_json(value: Any) -> bytes:
    """Return the text of a JSON value as it is stored."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def build_blob_key(folder: str, content: bytes) -> str:
    """Return the key of a blob: that of its uncompressed content."""
    return f"{folder}/{_hex_digest(content)}"


def _hex_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
