"""Uploads over HTTP: announced at one door, used at two others."""

import hashlib
import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from fermata.aws.resources import Resources
from functions.api import app
from functions.tool_result import app as tool_result
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

PATH = "/admin/api/ai/uploads"
RAW = b'{"page": {"id": "p1"}}'
DIGEST = hashlib.sha256(RAW).hexdigest()
BODY = {"kind": "snapshot", "bytes": len(RAW), "sha256": DIGEST}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def ask(signer: TokenSigner, body: Any, door: Any = app, path: str = PATH, **claims: Any) -> tuple[int, Any]:
    answer = door.handler(make_proxy_event("POST", path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_it_is_told_where_to_put_it_with_what_and_until_when(bakery: TokenSigner) -> None:
    status, told = ask(bakery, BODY)
    assert status == 201
    assert set(told) == {"ref", "method", "url", "headers", "urlExpiresAt", "refExpiresAt"}
    assert set(told["headers"]) == {"content-type", "x-amz-checksum-sha256"}
    first, last = (datetime.fromisoformat(told[name]) for name in ("urlExpiresAt", "refExpiresAt"))
    assert (last - first).total_seconds() == pytest.approx(86_400 - 300, abs=1)
    assert urlsplit(told["url"]).path.endswith(told["ref"])


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"kind": "video"}, "'kind' must be 'snapshot' or 'image'."),
        ({"bytes": 0}, "'bytes' must be 1 at least."),
        ({"bytes": 10**9}, "'bytes' may be 999999999 at most."),
        ({"bytes": "5"}, "'bytes' must be a whole number."),
        ({"bytes": 2.5}, "'bytes' must be a whole number."),
        ({"sha256": DIGEST.upper()}, "'sha256' must match"),
        ({"sha256": None}, "'sha256' must be a string."),
        ({"name": "x"}, "'name' is not known here."),
    ],
)
def test_an_announcement_that_cannot_be_meant_is_refused(
    bakery: TokenSigner, members: dict[str, Any], says: str
) -> None:
    status, told = ask(bakery, BODY | members)
    assert status == 400
    assert says in told["error"]


def test_a_whole_number_may_be_written_with_a_point(bakery: TokenSigner) -> None:
    assert ask(bakery, BODY | {"bytes": float(len(RAW))})[0] == 201


def test_one_that_is_too_large_is_a_413(bakery: TokenSigner) -> None:
    status, told = ask(bakery, BODY | {"bytes": 20_000_000})
    assert (status, "16,777,216 bytes at most" in told["error"]) == (413, True)


def test_who_may_not_chat_may_not_upload(bakery: TokenSigner) -> None:
    assert ask(bakery, BODY, capabilities=("ai.audit.read",))[0] == 403


@pytest.mark.parametrize(
    ("ref", "status"),
    [("none", 400), ("", 404), (f"snapshot-{len(RAW)}-{DIGEST}-1600000000", 410)],
)
def test_a_reference_that_is_of_no_use_says_why(bakery: TokenSigner, ref: str, status: int) -> None:
    made = ref or ask(bakery, BODY)[1]["ref"]
    body = {"bridgeId": "b", "requestId": "r", "result": {"ok": True}, "snapshotRef": made}
    found, told = ask(bakery, body, tool_result, "/admin/api/ai/tool-result")
    assert (found, bool(told["error"])) == (status, True)


def test_a_snapshot_that_is_not_what_was_announced_is_a_409(resources: Resources, bakery: TokenSigner) -> None:
    told = ask(bakery, BODY)[1]
    key = urlsplit(told["url"]).path.removeprefix("/")
    resources.blobs._client.put_object(Bucket=resources.settings.bucket, Key=key, Body=RAW[::-1])
    body = {"bridgeId": "b", "requestId": "r", "result": {"ok": True}, "snapshotRef": told["ref"]}
    assert ask(bakery, body, tool_result, "/admin/api/ai/tool-result")[0] == 409
