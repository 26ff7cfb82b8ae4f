"""Uploads over HTTP: announced to one function, used by two others."""

import hashlib
import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from fermata.aws.resources import Resources
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from functions.api import app
from functions.tool_result import app as tool_result
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

PATH = "/admin/api/ai/uploads"
RAW = b'{"page": {"id": "p1"}}'
DIGEST = hashlib.sha256(RAW).hexdigest()
BODY = {"kind": "snapshot", "bytes": len(RAW), "sha256": DIGEST}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def send(signer: TokenSigner, body: Any, function: Any = app, path: str = PATH, **claims: Any) -> tuple[int, Any]:
    answer = function.handler(make_proxy_event("POST", path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_an_announced_upload_gets_a_url_with_headers_and_expiry(bakery: TokenSigner) -> None:
    status, response = send(bakery, BODY)
    assert status == 201
    assert set(response) == {"ref", "method", "url", "headers", "urlExpiresAt", "refExpiresAt"}
    assert set(response["headers"]) == {"content-type", "if-none-match", "x-amz-checksum-sha256"}
    first, last = (datetime.fromisoformat(response[name]) for name in ("urlExpiresAt", "refExpiresAt"))
    assert (last - first).total_seconds() == pytest.approx(86_400 - 300, abs=1)
    assert urlsplit(response["url"]).path.endswith(response["ref"])


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"kind": "video"}, "'kind' must be 'snapshot', 'image', 'audio', 'agentFiles' or 'media'."),
        ({"bytes": 0}, "'bytes' must be 1 at least."),
        ({"bytes": 10**9}, "'bytes' may be 999999999 at most."),
        ({"bytes": "5"}, "'bytes' must be a whole number."),
        ({"bytes": 2.5}, "'bytes' must be a whole number."),
        ({"sha256": DIGEST.upper()}, "'sha256' must match"),
        ({"sha256": None}, "'sha256' must be a string."),
        ({"name": "x"}, "'name' is not known here."),
    ],
)
def test_an_invalid_announcement_is_refused(bakery: TokenSigner, members: dict[str, Any], says: str) -> None:
    status, response = send(bakery, BODY | members)
    assert status == 400
    assert says in response["error"]


def test_a_whole_number_may_be_written_with_a_point(bakery: TokenSigner) -> None:
    assert send(bakery, BODY | {"bytes": float(len(RAW))})[0] == 201


def test_an_upload_that_is_too_large_is_a_413(bakery: TokenSigner) -> None:
    status, response = send(bakery, BODY | {"bytes": 20_000_000})
    assert (status, "16,777,216 bytes at most" in response["error"]) == (413, True)


@pytest.mark.parametrize(
    ("limit", "reason", "words"),
    [
        ({"user_uploads_per_day": 2}, "uploads", "You have made as many uploads as you may in a day (2)."),
        ({"tenant_uploads_per_day": 2}, "uploads", "Your workspace has made as many uploads as it may in a day (2)."),
        ({"user_bytes_per_day": 12_000_000}, "stored_bytes", "You may store 12,000,000 bytes a day"),
    ],
)
def test_uploads_beyond_a_limit_of_the_day_are_refused_with_words(
    bakery: TokenSigner,
    resources: Resources,
    caplog: pytest.LogCaptureFixture,
    limit: dict[str, int],
    reason: str,
    words: str,
) -> None:
    update_tenant(resources, "bakery", limits=TenantLimits(**limit))
    body = BODY | {"kind": "image", "bytes": 6_000_000}
    assert [send(bakery, body)[0] for _ in range(2)] == [201, 201]
    answer = app.handler(make_proxy_event("POST", PATH, bakery.bearer_headers(), body), None)
    assert answer["statusCode"] == 429
    assert words in json.loads(answer["body"])["error"]
    assert 1 <= int(answer["headers"]["Retry-After"]) <= 86_400
    events = [record for record in caplog.records if hasattr(record, "security")]
    assert [(record.message, record.reason) for record in events] == [("security.limit_reached", reason)]
    assert send(bakery, body, sub="ben")[0] == (429 if "tenant" in next(iter(limit)) else 201)


def test_uploading_needs_the_capability_to_chat(bakery: TokenSigner) -> None:
    assert send(bakery, BODY, capabilities=("ai.audit.read",))[0] == 403


def send_answer(signer: TokenSigner, bridge_id: str, request_id: str, **members: Any) -> tuple[int, Any]:
    body = {"bridgeId": bridge_id, "requestId": request_id, "result": {"ok": True}} | members
    return send(signer, body, tool_result, "/admin/api/ai/tool-result")


@pytest.fixture
def waiting(resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The ids of a turn of the token's user and of its open request."""
    stage = Stage(resources, monkeypatch)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="a")))
    assert stage.run_workflow() == "waiting"
    monkeypatch.setattr("fermata.aws.resources.Resources.workflow", stage.workflow)
    return stage.turn.id, stage.tool_requests()[-1].request_id


@pytest.mark.parametrize(
    ("ref", "status"),
    [("none", 400), ("", 404), (f"snapshot-{len(RAW)}-{DIGEST}-1600000000", 410)],
)
def test_an_unusable_reference_is_refused_with_a_reason(
    bakery: TokenSigner, waiting: tuple[str, str], ref: str, status: int
) -> None:
    found, response = send_answer(bakery, *waiting, snapshotRef=ref or send(bakery, BODY)[1]["ref"])
    assert (found, "upload" in response["error"].lower()) == (status, True)


def test_a_snapshot_that_is_not_what_was_announced_is_a_409(
    resources: Resources, bakery: TokenSigner, waiting: tuple[str, str]
) -> None:
    response = send(bakery, BODY)[1]
    key = urlsplit(response["url"]).path.removeprefix("/")
    resources.blobs._client.put_object(Bucket=resources.settings.bucket, Key=key, Body=RAW[::-1])
    assert send_answer(bakery, *waiting, snapshotRef=response["ref"])[0] == 409


def test_a_repeated_answer_is_accepted_without_its_snapshot(
    resources: Resources, bakery: TokenSigner, waiting: tuple[str, str]
) -> None:
    response = send(bakery, BODY)[1]
    key = urlsplit(response["url"]).path.removeprefix("/")
    resources.blobs._client.put_object(Bucket=resources.settings.bucket, Key=key, Body=RAW)
    assert send_answer(bakery, *waiting, snapshotRef=response["ref"])[0] == 200
    resources.blobs._client.delete_object(Bucket=resources.settings.bucket, Key=key)
    assert send_answer(bakery, *waiting, snapshotRef=response["ref"])[0] == 200
    assert send_answer(bakery, *waiting, snapshotRef=f"snapshot-{len(RAW)}-{DIGEST}-1600000000")[0] == 200
