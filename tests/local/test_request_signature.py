"""Check that signatures of botocore are understood, and that a request with one difference is refused."""

import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from local.request_signature import (
    DATE_FORMAT,
    DATE_HEADER,
    MAX_SKEW_SECONDS,
    REGION,
    SIGNATURE_HEADER,
    UNSIGNED_PAYLOAD,
    HttpRequest,
    RunCredentials,
    SignatureRefusedError,
    read_presigned_signature,
    read_signature,
    sign_run_request,
    verify_run_request,
)

KEY = RunCredentials.generate()
HOST = "127.0.0.1:4566"
BODY = b'{"TableName": "x"}'
PARTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


def sign_with_botocore(
    service: str, method: str, path: str, query: dict[str, str], credentials: RunCredentials = KEY
) -> HttpRequest:
    """Sign a request as boto3 does, and return it as it reaches a server."""
    request = AWSRequest(method, f"http://{HOST}{path}", data=BODY, params=query)
    request.headers["X-Amz-Target"] = "DynamoDB_20120810.ListTables"
    signer: Any = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(Credentials(credentials.access_key_id, credentials.secret_access_key), service, REGION).add_auth(request)
    sent = request.prepare()
    at = urlsplit(sent.url)
    headers = {name.lower(): str(value) for name, value in sent.headers.items()}
    return HttpRequest(method, at.path, at.query, {"host": HOST} | headers)


def verify(request: HttpRequest, body: bytes = BODY, now: float | None = None) -> None:
    """Verify a request as the emulator does."""
    signature = read_signature(request, KEY, now=lambda: now or time.time())
    payload_hash = request.headers.get("x-amz-content-sha256") or hashlib.sha256(body).hexdigest()
    signature.verify(request, KEY, payload_hash)


@pytest.mark.parametrize("service", ["dynamodb", "s3", "lambda", "states", "execute-api"])
@given(st.lists(PARTS, max_size=3), st.dictionaries(PARTS, PARTS, max_size=4))
def test_what_an_aws_client_signs_is_accepted(service: str, names: list[str], query: dict[str, str]) -> None:
    path = "/" + "/".join(quote(name, safe="-._~") for name in names if name not in (".", ".."))
    verify(sign_with_botocore(service, "POST", path, query))


@pytest.fixture
def signed() -> HttpRequest:
    return sign_with_botocore("dynamodb", "POST", "/a", {"b": "c"})


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "PUT"},
        {"path": "/A"},
        {"path": "/a/"},
        {"query": "b=d"},
        {"query": ""},
        {"query": "b=c&b=c"},
    ],
)
def test_another_request_is_refused(signed: HttpRequest, changed: dict[str, str]) -> None:
    with pytest.raises(SignatureRefusedError):
        verify(replace(signed, **changed))


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"x-amz-target": "DynamoDB_20120810.DeleteTable"},
        {"x-amz-security-token": "added"},
        {"x-amz-date": "20200101T000000Z"},
        {"x-amz-date": ""},
        {"authorization": ""},
        {"authorization": "Bearer x"},
        {"authorization": "AWS4-HMAC-SHA256 Credential=é/20200101/a/b/aws4_request, SignedHeaders=host, Signature=é"},
    ],
)
def test_another_header_is_refused(signed: HttpRequest, headers: dict[str, str]) -> None:
    with pytest.raises(SignatureRefusedError):
        verify(replace(signed, headers={**signed.headers, **headers}))


def test_another_body_is_refused(signed: HttpRequest) -> None:
    with pytest.raises(SignatureRefusedError):
        verify(signed, BODY + b" ")


@pytest.mark.parametrize(
    "known",
    [
        RunCredentials("test", "test"),
        RunCredentials("000000000000", "local"),
        RunCredentials(KEY.access_key_id, "test"),
        RunCredentials.generate(),
    ],
)
def test_no_other_key_is_accepted(known: RunCredentials) -> None:
    with pytest.raises(SignatureRefusedError):
        verify(sign_with_botocore("dynamodb", "POST", "/", {}, known))


@pytest.mark.parametrize(("seconds", "accepted"), [(-1, False), (1, True), (299, True), (301, False)])
def test_a_signature_ends_after_minutes_and_is_from_no_other_time(
    signed: HttpRequest, seconds: int, accepted: bool
) -> None:
    signed_at = datetime.strptime(signed.headers["x-amz-date"], DATE_FORMAT).replace(tzinfo=UTC)
    now = signed_at + timedelta(seconds=seconds if seconds > 0 else -MAX_SKEW_SECONDS - 1)
    if accepted:
        verify(signed, now=now.timestamp())
        return
    with pytest.raises(SignatureRefusedError):
        verify(signed, now=now.timestamp())


@pytest.mark.parametrize("name", ["host", "x-amz-date", "x-amz-target"])
def test_a_signature_must_cover_the_headers_that_decide(signed: HttpRequest, name: str) -> None:
    authorization = signed.headers["authorization"].replace(f"{name};", "").replace(f";{name}", "")
    with pytest.raises(SignatureRefusedError):
        read_signature(replace(signed, headers={**signed.headers, "authorization": authorization}), KEY)


def test_a_request_to_our_own_pages_is_signed_with_headers_of_its_own() -> None:
    headers = {"host": HOST, "authorization": "Bearer of-the-user"}
    signed = HttpRequest("GET", "/a%20b", "q=1", headers | sign_run_request(KEY, "GET", HOST, "/a%20b?q=1"))
    verify_run_request(signed, KEY)
    verify_run_request(replace(signed, headers={**signed.headers, "x-amz-date": "the caller's own"}), KEY)
    for other in (
        replace(signed, method="POST"),
        replace(signed, path="/_fermata/snapshot"),
        replace(signed, query=""),
        replace(signed, headers={**signed.headers, "host": "127.0.0.1:1"}),
        replace(signed, headers={**signed.headers, DATE_HEADER: "20200101T000000Z"}),
        replace(signed, headers=headers),
    ):
        with pytest.raises(SignatureRefusedError):
            verify_run_request(other, KEY)
    with pytest.raises(SignatureRefusedError):
        verify_run_request(signed, RunCredentials.generate())


def test_a_signature_for_an_aws_service_opens_none_of_our_own_pages(signed: HttpRequest) -> None:
    headers = {SIGNATURE_HEADER: signed.headers["authorization"], DATE_HEADER: signed.headers["x-amz-date"]}
    with pytest.raises(SignatureRefusedError):
        verify_run_request(replace(signed, headers={**signed.headers, **headers}), KEY)


@pytest.mark.parametrize(("expires_in", "age", "accepted"), [(300, 1, True), (300, 301, False), (9999, 700, False)])
def test_a_presigned_address_is_accepted_for_minutes(expires_in: int, age: int, accepted: bool) -> None:
    client = boto3.client(
        "s3",
        region_name=REGION,
        endpoint_url=f"http://{HOST}",
        aws_access_key_id=KEY.access_key_id,
        aws_secret_access_key=KEY.secret_access_key,
        config=boto3.session.Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    named = {"Bucket": "b", "Key": "uploads/a b/ü"}
    at = urlsplit(client.generate_presigned_url("put_object", Params=named, ExpiresIn=expires_in))
    received = HttpRequest("PUT", at.path, at.query, {"host": HOST})
    later = time.time() + age
    if not accepted:
        with pytest.raises(SignatureRefusedError):
            read_presigned_signature(received, KEY, now=lambda: later)
        return
    signature, request = read_presigned_signature(received, KEY, now=lambda: later)
    signature.verify(request, KEY, UNSIGNED_PAYLOAD)
    with pytest.raises(SignatureRefusedError):
        signature.verify(replace(request, path=request.path + "x"), KEY, UNSIGNED_PAYLOAD)


def test_a_key_is_shown_by_its_id_only() -> None:
    assert KEY.secret_access_key not in repr(KEY)
    assert RunCredentials.parse(KEY.to_text()) == KEY
    with pytest.raises(ValueError, match="id:secret"):
        RunCredentials.parse("id")
