"""Test uploads to pre-signed URLs through the front door: they accept what S3 accepts."""

import asyncio
import base64
import hashlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from fermata.aws.blob_store import BlobStore
from fermata.aws.clock import Clock
from fermata.aws.resources import S3_CONFIG
from local.aws_clients import CREDENTIALS_ENVIRONMENT
from local.front_door.s3_uploads import BUCKET_PATH_PREFIX, EMULATOR_SIGNING_KEY, BucketResponse, S3Uploads

ENDPOINT = "http://127.0.0.1:4566"
RAW = b'{"page": 1}'
CHECKSUM = base64.b64encode(hashlib.sha256(RAW).digest()).decode()
HEADERS = {"content-length": str(len(RAW)), "content-type": "application/json", "x-amz-checksum-sha256": CHECKSUM}
KEY = "uploads/local/abc/snapshot-11"
Put = Callable[..., BucketResponse]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Send the request that a URL was signed for, with some differences."""
    for name, value in (CREDENTIALS_ENVIRONMENT | {"AWS_SECRET_ACCESS_KEY": EMULATOR_SIGNING_KEY}).items():
        monkeypatch.setenv(name, value)
    blobs = BlobStore(boto3.client("s3", config=S3_CONFIG, endpoint_url=ENDPOINT), "fermata", Clock())

    def ask(
        method: str = "PUT", body: bytes = RAW, seconds: int = 300, path: str = "", query: str = "", **changed: Any
    ) -> BucketResponse:
        at = urlsplit(blobs.presign_put(KEY, HEADERS, seconds))
        headers = {name: value for name, value in (HEADERS | changed).items() if value is not None}
        return asyncio.run(S3Uploads(ENDPOINT).handle_upload(method, path or at.path, query or at.query, headers, body))

    return ask


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The objects that reached the emulator, by bucket and key."""
    found: dict[str, bytes] = {}

    class Client:
        def put_object(self, *, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:
            found[f"{Bucket}/{Key} {ContentType}"] = Body

    monkeypatch.setattr("local.front_door.s3_uploads.get_client", lambda *_: Client())
    return found


def test_a_signed_upload_is_stored(put: Put, stored: dict[str, bytes]) -> None:
    said = put()
    assert (said.status, said.headers["access-control-allow-origin"]) == (200, "*")
    assert stored == {f"fermata/{KEY} application/json": RAW}


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"body": RAW + b" "}, 400, "BadDigest"),
        ({"content-length": "12"}, 403, "SignatureDoesNotMatch"),
        ({"content-type": "text/html"}, 403, "SignatureDoesNotMatch"),
        ({"x-amz-checksum-sha256": "AAAA"}, 403, "SignatureDoesNotMatch"),
        ({"x-amz-checksum-sha256": None}, 403, "SignatureDoesNotMatch"),
        ({"path": f"/fermata/{KEY}2"}, 403, "SignatureDoesNotMatch"),
        ({"path": "/fermata/turns/local/t/x"}, 403, "SignatureDoesNotMatch"),
        ({"query": "X-Amz-Signature=a"}, 403, "AccessDenied"),
        ({"query": "x=1"}, 403, "AccessDenied"),
        ({"seconds": -1}, 403, "AccessDenied"),
        ({"method": "GET"}, 405, "MethodNotAllowed"),
        ({"method": "DELETE"}, 405, "MethodNotAllowed"),
    ],
)
def test_any_other_request_is_refused_as_by_s3(
    put: Put, stored: dict[str, bytes], how: dict[str, Any], status: int, code: str
) -> None:
    said = put(**how)
    assert (said.status, f"<Code>{code}</Code>" in said.body.decode()) == (status, True)
    assert stored == {}


def test_a_preflight_is_answered_for_any_origin(put: Put) -> None:
    said = put("OPTIONS", query="x=1")
    assert said.status == 200
    assert said.headers["access-control-allow-methods"] == "PUT"
    assert "x-amz-checksum-sha256" in said.headers["access-control-allow-headers"]


def test_signed_urls_are_rewritten_to_the_front_door() -> None:
    body = f'{{"url":"{ENDPOINT}/fermata/x?y=1","text":"see {ENDPOINT}/"}}'.encode()
    shown = S3Uploads(ENDPOINT).rewrite_signed_urls(body, "127.0.0.1:8787")
    assert (
        shown
        == f'{{"url":"http://127.0.0.1:8787{BUCKET_PATH_PREFIX}/fermata/x?y=1","text":"see {ENDPOINT}/"}}'.encode()
    )
    assert S3Uploads(ENDPOINT).rewrite_signed_urls(b"{}", "h") == b"{}"
