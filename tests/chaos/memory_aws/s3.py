"""S3 in memory: one bucket, the calls of a boto3 client that the product makes."""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.memory_aws.errors import aws_error


@dataclass
class StoredObject:
    body: bytes
    put_at: float
    content_type: str = ""


@dataclass
class MemoryS3:
    now: Any
    """A function that returns the simulated time."""
    objects: dict[str, StoredObject] = field(default_factory=dict)

    def put_object(self, *, Key: str, Body: bytes, ContentType: str = "", **_: Any) -> dict[str, Any]:
        self.objects[Key] = StoredObject(bytes(Body), self.now(), ContentType)
        return {"ETag": hashlib.sha256(bytes(Body)).hexdigest()}

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:
        stored = self.objects.get(Key)
        if stored is None:  # whoever may not list the bucket is not told that a key is missing
            raise aws_error("AccessDenied", "GetObject", "Access Denied", 403)
        return {"Body": io.BytesIO(stored.body), "ContentLength": len(stored.body), "ContentType": stored.content_type}

    def delete_objects(self, *, Delete: dict[str, Any], **_: Any) -> dict[str, Any]:
        for entry in Delete["Objects"]:
            self.objects.pop(entry["Key"], None)
        return {}

    def get_paginator(self, operation: str) -> "MemoryS3":
        assert operation == "list_objects_v2", operation
        return self

    def paginate(self, *, Prefix: str, **_: Any) -> Iterator[dict[str, Any]]:
        keys = sorted(key for key in self.objects if key.startswith(Prefix))
        for start in range(0, max(len(keys), 1), 1000):
            yield {"Contents": [{"Key": key} for key in keys[start : start + 1000]]}

    def generate_presigned_url(self, operation: str, *, Params: dict[str, Any], ExpiresIn: int) -> str:
        return f"memory://{operation}/{Params['Key']}?expires={ExpiresIn}"

    def put_presigned(self, url: str, body: bytes) -> None:
        """Put an object as a client does with a presigned URL."""
        key = url.removeprefix("memory://put_object/").partition("?")[0]
        self.put_object(Key=key, Body=body)

    def expire(self, prefix: str, before: float) -> None:
        """Delete objects under a prefix that were put before an instant, as a lifecycle rule does."""
        for key in [key for key, stored in self.objects.items() if key.startswith(prefix) and stored.put_at < before]:
            del self.objects[key]
