"""A remote tool is called by a signed request; a response becomes data, a failure, or an answer that comes later."""

import socket
import threading
import time
from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.drivers.transport import url_guard
from fermata.remote_tools.manifest_tool_executor import (
    AttemptFailed,
    ManifestTool,
    ResultComesLater,
    build_envelope,
    execute_tool,
)
from fermata.remote_tools.signed_tool_attempt import RemoteCall, RemoteCallContext, RemoteEndpoint
from fermata.signed_requests.signature import make_signing_secret
from fermata.signed_requests.signed_post import MAX_RESPONSE_BYTES, open_guarded_connection
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.remote_tools.manifests import ExecutionTime, make_manifest

SECRET = make_signing_secret()
KEY = "k-1234567890-vendor"
CALLBACK = {"requestId": "1.0.abc"}


def attempt(url: str, *, seconds: float = 5.0, loopback: bool = True, callback: Any = None, **headers: str) -> Any:
    context = RemoteCallContext("bakery", "conversation-1", "ada", "turn-1", "anthropic", callback)
    endpoint = RemoteEndpoint(url, [SECRET], {"x-api-key": KEY} | headers)
    with open_guarded_connection(loopback=loopback, seconds=seconds) as connection:
        call = RemoteCall("pim.getProduct", endpoint, "turn-1/1/0", context, connection, time.time)
        return call.attempt({"sku": "SKU-123"})


def fail(url: str, **options: Any) -> AttemptFailed:
    with pytest.raises(AttemptFailed) as failed:
        attempt(url, **options)
    return failed.value


def test_a_call_is_sent_signed_with_its_context_and_the_tenants_headers(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"data": {"title": "Bread"}})
    assert attempt(tool_server.url) == {"title": "Bread"}
    (call,) = tool_server.calls
    call.verify(SECRET)
    assert call.body == {
        "toolName": "pim.getProduct",
        "arguments": {"sku": "SKU-123"},
        "context": {
            "siteId": "bakery",
            "sessionId": "conversation-1",
            "userId": "ada",
            "traceId": "turn-1",
            "plannerProvider": "anthropic",
        },
    }
    assert call.headers["x-api-key"] == KEY
    assert call.headers["idempotency-key"] == call.headers["webhook-id"] == "turn-1/1/0"
    assert "authorization" not in call.headers


def test_a_header_of_the_tenant_replaces_none_of_ours(tool_server: ScriptedToolServer) -> None:
    foreign = {"Webhook-Signature": "v1,mine", "HOST": "internal", "Idempotency-Key": "x", "content-length": "1"}
    attempt(tool_server.url, **foreign)
    (call,) = tool_server.calls
    call.verify(SECRET)
    assert call.headers["idempotency-key"] == "turn-1/1/0"
    assert call.headers["host"].startswith("127.0.0.1")


@pytest.mark.parametrize(
    ("status", "is_transient", "was_refused"),
    [(400, False, False), (401, False, False), (404, False, False), (408, True, False), (409, False, False),
     (425, True, True), (429, True, True), (500, True, False), (502, True, False), (503, True, True)],
)  # fmt: skip
def test_a_status_says_whether_the_call_may_succeed_later(
    tool_server: ScriptedToolServer, status: int, is_transient: bool, was_refused: bool
) -> None:
    tool_server.script_answer(b"down", status)
    failure = fail(tool_server.url)
    assert (failure.is_transient, failure.was_refused) == (is_transient, was_refused)
    assert failure.message == f"pim.getProduct answered {status}: down"


def test_an_error_quotes_the_beginning_of_the_body_without_secrets(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(f"bad key {KEY} ".encode() + b"x" * 5000, 503)
    message = fail(tool_server.url).message
    assert "503" in message
    assert KEY not in message
    assert len(message) < 240


def test_a_server_names_the_wait(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(b"", 429, headers={"Retry-After": "7"})
    assert fail(tool_server.url).retry_after == 7.0


def test_a_response_without_data_breaks_an_output_schema_that_asks_for_some(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({})
    tool = ManifestTool(make_manifest(outputSchema={"type": "object"}), lambda _arguments: attempt(tool_server.url))
    output = execute_tool(tool, {}, ExecutionTime().clock)
    assert isinstance(output, ToolOutput)
    envelope = build_envelope(output)
    assert envelope["error"]["code"] == "invalid_tool_output"


@pytest.mark.parametrize("body", [b"<html>", b"", b"{", b'{"data": NaN}'])
def test_a_success_without_json_is_a_failure_that_does_not_pass(tool_server: ScriptedToolServer, body: bytes) -> None:
    tool_server.script_answer(body)
    failure = fail(tool_server.url)
    assert "no JSON" in failure.message
    assert not failure.is_transient


def test_a_response_of_more_than_a_megabyte_is_refused(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(b'{"data":"' + b"x" * MAX_RESPONSE_BYTES + b'"}')
    assert "more than 1 MB" in fail(tool_server.url).message


def test_a_redirect_is_not_followed(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(b"", 307, headers={"Location": tool_server.url})
    assert "redirects" in fail(tool_server.url).message
    assert len(tool_server.calls) == 1


def test_an_endpoint_that_takes_too_long_may_answer_later(tool_server: ScriptedToolServer) -> None:
    is_over = threading.Event()
    tool_server.script_answer({"data": 1}, before=lambda _call: is_over.wait(30))
    failure = fail(tool_server.url, seconds=0.2)
    is_over.set()
    assert failure.is_transient
    assert not failure.was_refused


def test_an_endpoint_that_is_down_was_not_reached() -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        failure = fail(f"http://127.0.0.1:{bound.getsockname()[1]}/")
    assert failure.is_transient
    assert failure.was_refused


@pytest.mark.parametrize("status", [202])
@pytest.mark.parametrize("body", [b"", b"{}", b'{"status":"queued"}'])
def test_accepted_means_that_the_answer_comes_later(tool_server: ScriptedToolServer, status: int, body: bytes) -> None:
    tool_server.script_answer(body, status)
    assert isinstance(attempt(tool_server.url, callback=CALLBACK), ResultComesLater)
    assert tool_server.calls[0].body["callback"] == CALLBACK


def test_accepted_with_data_is_an_answer(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"data": 5}, 202)
    assert attempt(tool_server.url, callback=CALLBACK) == 5


def test_a_name_is_resolved_and_checked_for_every_call(
    tool_server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = iter([("93.184.216.34",), ("10.0.0.5",)])
    monkeypatch.setattr(url_guard, "_resolve", lambda _host, _port: next(addresses))
    guard = url_guard.UrlGuard()
    guard.check_url_and_host("https://vendor.example/tool")  # public when it was registered
    failure = fail("https://vendor.example/tool", loopback=False)
    assert "not public" in failure.message
    assert not failure.is_transient


@pytest.mark.parametrize("url", ["http://vendor.example/t", "https://169.254.169.254/latest", "https://[::1]/t"])
def test_no_internal_address_is_called(url: str) -> None:
    assert not fail(url, loopback=False).is_transient
