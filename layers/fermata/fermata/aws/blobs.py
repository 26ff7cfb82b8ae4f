"""Anything large lies in one bucket, under the name of its own content.

Keys: `turns/<tenant>/<turn>/<sha256>` expires with the turn, `conversations/<tenant>/<id>/<sha256>` lives as long
as the conversation. A blob is always put again, which renews its age.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

LARGE = 32 * 1024
"""Bytes of JSON from which a block or an event goes to the bucket before its row is written (design §4)."""


class Blobs:
    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, folder: str, value: Any) -> str:
        """Store a JSON value under `folder`; returns its key."""
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
        key = f"{folder}/{hashlib.sha256(body).hexdigest()}"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
        return key

    def get(self, key: str) -> Any:
        return json.loads(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())


def turn_folder(tenant: str, turn: str) -> str:
    return f"turns/{tenant}/{turn}"


def conversation_folder(tenant: str, conversation: str) -> str:
    return f"conversations/{tenant}/{conversation}"
