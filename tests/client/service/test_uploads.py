"""Snapshots and images that are too large for a request are uploaded first."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from fermata_client import FermataClient, InvalidResponseError, RequestRefusedError, ServiceUnreachableError
from fermata_client.service.transport import Transport
from fermata_client.service.uploads import MAX_REQUEST_BYTES, MIN_UPLOADED_PART_BYTES, SNAPSHOT_REUSE_SECONDS, Uploads

BIG = {"files": [{"blob": "x" * MAX_REQUEST_BYTES}], "title": "é"}
PLACE = "https://bucket.example/uploads/abc?signature=1"
HEADERS = {"content-type": "application/json", "x-amz-checksum-sha256": "sum"}


class Service:
    """Answers like the service and like the bucket, and remembers what it was asked."""

    def __init__(self) -> None:
        self.announced: list[Any] = []
        self.put: list[httpx.Request] = []
        self.bodies: list[Any] = []
        self.refusal: httpx.Response | Exception | None = None
        self.upload_response: dict[str, Any] = {"url": PLACE, "headers": HEADERS}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            self.put.append(request)
            if isinstance(self.refusal, Exception):
                raise self.refusal
            return self.refusal or httpx.Response(200)
        body = json.loads(request.content)
        if request.url.path.endswith("/uploads"):
            self.announced.append(body)
            return httpx.Response(201, json={"ref": f"ref-{len(self.announced)}"} | self.upload_response)
        self.bodies.append(body)
        return httpx.Response(202 if "chat" in request.url.path else 200, json={"bridgeId": "b"})


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(service: Service) -> FermataClient:
    return FermataClient("http://service", "secret", transport=httpx.MockTransport(service))


def start(client: FermataClient, snapshot: Any) -> None:
    client.start_turn_detached("site", "Hi", conversation_id="c", snapshot=snapshot)


def stream(client: FermataClient, snapshot: Any) -> None:
    with client.start_turn("site", "Hi", conversation_id="c", snapshot=snapshot):
        pass


def answer(client: FermataClient, snapshot: Any) -> None:
    client.post_tool_result("b", "r", {"ok": True}, snapshot)


@pytest.mark.parametrize("call", [start, stream, answer])
def test_a_large_snapshot_is_uploaded_and_named(
    client: FermataClient, service: Service, call: Callable[[FermataClient, Any], None]
) -> None:
    call(client, BIG)
    (put,), (announced,), (body,) = service.put, service.announced, service.bodies
    assert json.loads(put.content) == BIG
    assert announced == {
        "kind": "snapshot",
        "bytes": len(put.content),
        "sha256": hashlib.sha256(put.content).hexdigest(),
    }
    assert str(put.url) == PLACE
    assert HEADERS.items() <= dict(put.headers).items()
    assert (body["snapshotRef"], "snapshot" in body) == ("ref-1", False)


def test_the_bucket_never_sees_the_token(client: FermataClient, service: Service) -> None:
    start(client, BIG)
    assert "authorization" not in service.put[0].headers


@pytest.mark.parametrize("snapshot", [None, {}, {"page": {"id": "p"}}, {"blob": "x" * (MAX_REQUEST_BYTES - 1000)}])
def test_one_that_fits_goes_along(client: FermataClient, service: Service, snapshot: Any) -> None:
    start(client, snapshot)
    assert service.put == []
    assert service.bodies[0].get("snapshot") == snapshot


def test_what_fits_only_before_it_is_escaped_is_uploaded(client: FermataClient, service: Service) -> None:
    start(client, {"quotes": '"' * (MAX_REQUEST_BYTES // 3)})
    assert len(service.put) == 1


def test_the_same_one_is_uploaded_once_and_a_changed_one_again(client: FermataClient, service: Service) -> None:
    for snapshot in (BIG, BIG, BIG | {"title": "new"}, BIG):
        answer(client, snapshot)
    assert [body["snapshotRef"] for body in service.bodies] == ["ref-1", "ref-1", "ref-2", "ref-3"]


def test_after_an_hour_it_is_uploaded_again(service: Service) -> None:
    now = [0.0]
    way = Transport(
        "http://service", "t", transport=httpx.MockTransport(service), stream_idle_timeout=1, request_timeout=1
    )
    uploads = Uploads(way, lambda: now[0])
    for moment in (0.0, SNAPSHOT_REUSE_SECONDS - 1, SNAPSHOT_REUSE_SECONDS):
        now[0] = moment
        uploads.offload_snapshot({"snapshot": BIG})
    assert len(service.put) == 2
    way.close()


def test_a_small_image_goes_along_and_a_large_one_is_uploaded(client: FermataClient, service: Service) -> None:
    small, large = b"x" * 10, b"y" * MIN_UPLOADED_PART_BYTES
    assert client.image_part(small, "image/png") == {
        "kind": "image",
        "mimeType": "image/png",
        "data": base64.b64encode(small).decode(),
    }
    assert client.image_part(large, "image/jpeg") == {"kind": "image", "mimeType": "image/jpeg", "uploadRef": "ref-1"}
    assert (service.put[0].content, service.announced[0]["kind"]) == (large, "image")


def test_a_recording_goes_along_or_is_uploaded_like_an_image(client: FermataClient, service: Service) -> None:
    small = {"kind": "audio", "mimeType": "audio/ogg", "data": base64.b64encode(b"OggS").decode()}
    assert client.audio_part(b"OggS", "audio/ogg") == small
    large = client.audio_part(b"y" * MIN_UPLOADED_PART_BYTES, "audio/mpeg")
    assert large == {"kind": "audio", "mimeType": "audio/mpeg", "uploadRef": "ref-1"}
    assert service.announced[0]["kind"] == "audio"


def test_bytes_that_are_there_already_are_uploaded(client: FermataClient, service: Service) -> None:
    service.refusal = httpx.Response(412, text="<Error><Code>PreconditionFailed</Code></Error>")
    start(client, BIG)
    assert service.bodies[0]["snapshotRef"] == "ref-1"


def test_a_refusal_of_the_bucket_is_raised(client: FermataClient, service: Service) -> None:
    service.refusal = httpx.Response(403, text="<Error><Code>AccessDenied</Code></Error>")
    with pytest.raises(RequestRefusedError, match="403"):
        start(client, BIG)
    service.refusal = httpx.ConnectError("no")
    with pytest.raises(ServiceUnreachableError, match=r"upload .* failed"):
        start(client, BIG)
    assert service.bodies == []


@pytest.mark.parametrize("upload_response", [{"url": None}, {"headers": "x"}, {"ref": 7}])
def test_an_answer_that_does_not_say_where_is_broken(
    client: FermataClient, service: Service, upload_response: dict[str, Any]
) -> None:
    service.upload_response |= upload_response
    with pytest.raises(InvalidResponseError):
        start(client, BIG)
