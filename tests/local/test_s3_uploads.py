"""Test uploads to pre-signed URLs through the front door: they accept what S3 accepts."""

import asyncio
import base64
import hashlib
import io
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError

from fermata.aws.blob_store import BlobStore
from fermata.aws.clock import Clock
from fermata.aws.resources import S3_CONFIG
from local.aws_clients import credentials_environment
from local.front_door.s3_uploads import BUCKET_PATH_PREFIX, BucketResponse, S3Uploads
from local.request_signature import get_run_credentials

ENDPOINT = "http://127.0.0.1:4566"
RAW = b'{"page": 1}'
CHECKSUM = base64.b64encode(hashlib.sha256(RAW).digest()).decode()
HEADERS = {
    "content-length": str(len(RAW)),
    "content-type": "application/json",
    "if-none-match": "*",
    "x-amz-checksum-sha256": CHECKSUM,
}
EDITOR = "http://localhost:5173"
KEY = "uploads/local/abc/snapshot-11"
Put = Callable[..., BucketResponse]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Send the request that a URL was signed for, with some differences."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    blobs = BlobStore(boto3.client("s3", config=S3_CONFIG, endpoint_url=ENDPOINT), "fermata", Clock())

    uploads = S3Uploads(ENDPOINT, get_run_credentials(), frozenset((EDITOR,)))

    def ask(
        method: str = "PUT",
        body: bytes = RAW,
        seconds: int = 300,
        path: str = "",
        query: str = "",
        key: str = KEY,
        **changed: Any,
    ) -> BucketResponse:
        at = urlsplit(blobs.presign_put(key, HEADERS, seconds))
        headers = {name: value for name, value in (HEADERS | changed).items() if value is not None}
        return asyncio.run(uploads.handle_upload(method, path or at.path, query or at.query, headers, body))

    return ask


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The objects that reached the emulator, by bucket and key."""
    found: dict[str, bytes] = {}

    class Client:
        def put_object(self, *, Bucket: str, Key: str, Body: bytes, ContentType: str, IfNoneMatch: str = "") -> None:
            if IfNoneMatch and f"{Bucket}/{Key} {ContentType}" in found:
                raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
            found[f"{Bucket}/{Key} {ContentType}"] = Body

    monkeypatch.setattr("local.front_door.s3_uploads.get_client", lambda *_: Client())
    return found


def test_a_signed_upload_is_stored(put: Put, stored: dict[str, bytes]) -> None:
    said = put(origin=EDITOR)
    assert (said.status, said.headers["access-control-allow-origin"]) == (200, EDITOR)
    assert stored == {f"fermata/{KEY} application/json": RAW}


def test_a_url_stores_one_object_however_often_it_is_used(put: Put, stored: dict[str, bytes]) -> None:
    assert [put(origin=EDITOR).status for _ in range(3)] == [200, 412, 412]
    assert list(stored) == [f"fermata/{KEY} application/json"]


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"body": RAW + b" "}, 400, "BadDigest"),
        ({"content-length": "12"}, 403, "SignatureDoesNotMatch"),
        ({"content-type": "text/html"}, 403, "SignatureDoesNotMatch"),
        ({"if-none-match": None}, 403, "SignatureDoesNotMatch"),
        ({"if-none-match": '"x"'}, 403, "SignatureDoesNotMatch"),
        ({"x-amz-checksum-sha256": "AAAA"}, 403, "SignatureDoesNotMatch"),
        ({"x-amz-checksum-sha256": None}, 403, "SignatureDoesNotMatch"),
        ({"path": f"/fermata/{KEY}2"}, 403, "SignatureDoesNotMatch"),
        ({"path": "/fermata/turns/local/t/x"}, 403, "SignatureDoesNotMatch"),
        ({"query": "X-Amz-Signature=a"}, 403, "AccessDenied"),
        ({"query": "x=1"}, 403, "AccessDenied"),
        ({"seconds": -1}, 403, "AccessDenied"),
        ({"key": "turns/local/t/x"}, 403, "AccessDenied"),
        ({"key": "uploads"}, 403, "AccessDenied"),
        ({"key": "uploads/../turns/x"}, 403, "AccessDenied"),
        ({"method": "GET"}, 403, "SignatureDoesNotMatch"),
        ({"method": "DELETE"}, 405, "MethodNotAllowed"),
    ],
)
def test_any_other_request_is_refused_as_by_s3(
    put: Put, stored: dict[str, bytes], how: dict[str, Any], status: int, code: str
) -> None:
    said = put(**how)
    assert (said.status, f"<Code>{code}</Code>" in said.body.decode()) == (status, True)
    assert stored == {}


EXPORT = "exports/local/job/part-0001.ndjson.gz"
IMAGE = "content/local/shop/main/media/aa/bb"


@pytest.fixture
def get(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BucketResponse]:
    """Ask for a file whose address was signed for GET, with some differences."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)

    class Client:
        def get_object(self, *, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:
            whole = f"{Bucket}/{Key}".encode()
            if not Range:
                return {"ContentType": "application/gzip", "Body": io.BytesIO(whole)}
            first, last = map(int, Range.removeprefix("bytes=").split("-"))
            if first >= len(whole):
                raise ClientError({"Error": {"Code": "InvalidRange"}}, "GetObject")
            part = {"ContentType": "video/mp4", "ContentRange": f"bytes {first}-{last}/{len(whole)}"}
            return {**part, "Body": io.BytesIO(whole[first : last + 1])}

    monkeypatch.setattr("local.front_door.s3_uploads.get_client", lambda *_: Client())
    blobs = BlobStore(boto3.client("s3", config=S3_CONFIG, endpoint_url=ENDPOINT), "fermata", Clock())
    uploads = S3Uploads(ENDPOINT, get_run_credentials(), frozenset((EDITOR,)))

    def ask(
        method: str = "GET",
        key: str = EXPORT,
        seconds: int = 300,
        path: str = "",
        is_attachment: bool = False,
        **headers: str,
    ) -> BucketResponse:
        at = urlsplit(blobs.presign_get(key, seconds, is_attachment=is_attachment))
        return asyncio.run(uploads.handle_upload(method, path or at.path, at.query, headers, b""))

    return ask


def test_a_file_of_an_export_is_downloaded_by_a_program(get: Callable[..., BucketResponse]) -> None:
    said = get()
    assert (said.status, said.body) == (200, f"fermata/{EXPORT}".encode())


def test_a_part_of_a_video_is_sent_to_a_page_that_shows_it(get: Callable[..., BucketResponse]) -> None:
    shown = {"sec-fetch-site": "same-origin", "sec-fetch-dest": "video"}
    said = get(key=IMAGE, range="bytes=0-6", **shown)
    assert (said.status, said.body) == (206, b"fermata")
    assert said.headers["content-range"] == f"bytes 0-6/{len(IMAGE) + 8}"
    assert get(key=IMAGE, range="bytes=900-901", **shown).status == 416


def test_media_run_nothing_and_what_is_saved_is_not_shown(get: Callable[..., BucketResponse]) -> None:
    opened = {"sec-fetch-site": "none", "sec-fetch-dest": "document"}
    said = get(key=IMAGE, is_attachment=True, **opened)
    assert (said.status, said.headers["content-disposition"]) == (200, "attachment")
    assert said.headers["content-security-policy"].startswith("sandbox;")
    assert "content-disposition" not in get(key=IMAGE, **opened).headers


@pytest.mark.parametrize("how", [{}, {"sec-fetch-site": "same-origin", "sec-fetch-dest": "image"}])
def test_an_image_of_content_is_downloaded_by_a_program_and_shown_by_a_page(
    get: Callable[..., BucketResponse], how: dict[str, str]
) -> None:
    said = get(key=IMAGE, **how)
    assert (said.status, said.body) == (200, f"fermata/{IMAGE}".encode())


@pytest.mark.parametrize(
    "how",
    [
        {"key": IMAGE, "origin": EDITOR, "sec-fetch-dest": "image"},
        {"key": IMAGE, "sec-fetch-site": "same-origin", "sec-fetch-dest": "empty"},
        {"sec-fetch-site": "same-origin", "sec-fetch-dest": "image"},
        {"origin": EDITOR},
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"key": "turns/local/t/x"},
        {"key": "uploads/local/abc/x"},
        {"key": "exports/../turns/x"},
        {"key": "exports"},
        {"path": "/fermata/exports/local/other/part-0001.ndjson.gz"},
        {"path": "/another/exports/local/job/part-0001.ndjson.gz"},
        {"seconds": -1},
        {"method": "PUT"},
    ],
)
def test_no_page_and_no_other_file_is_given_out(get: Callable[..., BucketResponse], how: Any) -> None:
    said = get(**how)
    assert said.status == 403
    assert b"fermata/" not in said.body


@pytest.mark.parametrize("known_key", ["test", "local", "another"])
def test_an_address_that_is_signed_with_another_key_is_refused(
    put: Put, stored: dict[str, bytes], known_key: str
) -> None:
    access_key_id = get_run_credentials().access_key_id
    session = boto3.session.Session(access_key_id, known_key, region_name="us-east-1")
    blobs = BlobStore(session.client("s3", config=S3_CONFIG, endpoint_url=ENDPOINT), "fermata", Clock())
    query = urlsplit(blobs.presign_put(KEY, HEADERS, 300)).query
    assert b"<Code>SignatureDoesNotMatch</Code>" in put(query=query).body
    assert stored == {}


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:5174", "*"])
@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_a_page_of_another_origin_uploads_nothing(put: Put, stored: dict[str, bytes], method: str, origin: str) -> None:
    said = put(method, origin=origin)
    assert said.status == 403
    assert not [name for name in said.headers if name.startswith("access-control-")]
    assert stored == {}


@pytest.mark.parametrize("host", ["127.0.0.1:8899", "localhost:8899", "desk.example:81"])
def test_a_page_of_the_front_door_itself_uploads_on_every_port(put: Put, stored: dict[str, bytes], host: str) -> None:
    assert put(origin=f"http://{host}", host=host).status == 200
    assert len(stored) == 1
    assert put(origin="http://evil.example", host=host).status == 403


def test_a_program_needs_no_origin(put: Put, stored: dict[str, bytes]) -> None:
    assert put().status == 200
    assert len(stored) == 1


def test_a_preflight_is_answered_for_the_editors_page(put: Put) -> None:
    said = put("OPTIONS", query="x=1", origin=EDITOR)
    assert (said.status, said.headers["access-control-allow-origin"]) == (200, EDITOR)
    assert said.headers["access-control-allow-methods"] == "PUT"
    assert "x-amz-checksum-sha256" in said.headers["access-control-allow-headers"]


def test_a_redirect_to_a_signed_url_leads_to_the_front_door() -> None:
    uploads = S3Uploads(ENDPOINT, get_run_credentials(), frozenset((EDITOR,)))
    sent = [(b"Location", f"{ENDPOINT}/fermata/x?y=1".encode()), (b"x-from", f"{ENDPOINT}/".encode())]
    shown = uploads.rewrite_location(sent, "127.0.0.1:8787")
    assert shown == [(b"Location", f"http://127.0.0.1:8787{BUCKET_PATH_PREFIX}/fermata/x?y=1".encode()), sent[1]]
    elsewhere = [(b"location", b"https://example.com/")]
    assert uploads.rewrite_location(elsewhere, "h") == elsewhere


def test_signed_urls_are_rewritten_to_the_front_door() -> None:
    body = f'{{"url":"{ENDPOINT}/fermata/x?y=1","text":"see {ENDPOINT}/"}}'.encode()
    shown = S3Uploads(ENDPOINT, get_run_credentials(), frozenset((EDITOR,))).rewrite_signed_urls(body, "127.0.0.1:8787")
    assert (
        shown
        == f'{{"url":"http://127.0.0.1:8787{BUCKET_PATH_PREFIX}/fermata/x?y=1","text":"see {ENDPOINT}/"}}'.encode()
    )
    assert S3Uploads(ENDPOINT, get_run_credentials(), frozenset((EDITOR,))).rewrite_signed_urls(b"{}", "h") == b"{}"
