"""Streams over HTTP count as readers: those of running turns, except the stream with which a turn starts."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fermata.aws.resources import Resources
from fermata.domain.use_limits import CallerLimits
from fermata.limits.limit_keys import build_user_limits_key
from fermata.limits.reader_leases import ReaderLease
from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from functions.stream_turns import app as stream_turns
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.turns.stage import ADA, Stage, reply_with_calls, tool_call_block

AI = "/admin/api/ai"


@pytest.fixture
def stage(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage whose readers are sent what there is, and no more."""
    settings = resources.settings.model_copy(update={"reader_seconds": 0})
    brief = Resources(settings, resources.clock)
    for name in ("tables", "blobs", "vault"):
        brief.__dict__[name] = getattr(resources, name)
    made = Stage(brief, monkeypatch)
    for module in ("fermata.wire.http.dispatch", "functions.stream_turns.app"):
        monkeypatch.setattr(f"{module}.get_resources", lambda: brief)
    return made


@pytest.fixture
def bakery(stage: Stage) -> TokenSigner:
    signer = make_tenant(stage.resources)
    update_tenant(stage.resources, "bakery", limits=TenantLimits(user_readers_at_once=1))
    return signer


def request(signer: TokenSigner, method: str, path: str, **parts: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        headers = signer.bearer_headers() | parts.pop("headers", {})
        transport = httpx.ASGITransport(stream_turns.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
            return await http.request(method, f"{AI}/{path}", headers=headers, **parts)

    return asyncio.run(send())


def list_leases(stage: Stage) -> list[str]:
    key = build_user_limits_key(stage.resources, ADA.tenant, ADA.user, "readers")
    row = stage.resources.tables.get_item_by_key(key) or {}
    return [name for name in row if name.startswith("x#")]


def start_waiting_turn(stage: Stage) -> str:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    assert stage.run_workflow() == "waiting"
    return f"bridges/{stage.turn.id}/events"


def test_a_reader_counts_no_more_when_its_response_is_over(stage: Stage, bakery: TokenSigner) -> None:
    path = start_waiting_turn(stage)
    for _ in range(3):
        assert request(bakery, "GET", path).status_code == 200
    assert list_leases(stage) == []


def test_one_reader_too_many_gets_words_and_seconds(
    stage: Stage, bakery: TokenSigner, caplog: pytest.LogCaptureFixture
) -> None:
    path = start_waiting_turn(stage)
    other = ReaderLease.take(stage.resources, ADA, CallerLimits())
    refused = request(bakery, "GET", path)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert json.loads(refused.text)["error"].startswith(
        "You follow turns with as many connections as you may have at once (1)."
    )
    assert [getattr(record, "reason", "") for record in caplog.records if hasattr(record, "security")] == ["readers"]
    other.release()
    assert request(bakery, "GET", path).status_code == 200


def test_a_turn_that_is_over_is_read_whoever_reads_elsewhere(stage: Stage, bakery: TokenSigner) -> None:
    path = start_waiting_turn(stage)
    stage.cancel_turn()
    other = ReaderLease.take(stage.resources, ADA, CallerLimits())
    assert request(bakery, "GET", path).status_code == 200
    other.release()


def test_the_stream_that_starts_a_turn_is_no_further_reader_and_a_repetition_is_one(
    stage: Stage, bakery: TokenSigner
) -> None:
    other = ReaderLease.take(stage.resources, ADA, CallerLimits())
    body = {"conversationId": stage.conversation.id, "prompt": "Go"}
    headers = {"idempotency-key": "k"}
    assert request(bakery, "POST", "chat/site", json=body, headers=headers).status_code == 200
    assert request(bakery, "POST", "chat/site", json=body, headers=headers).status_code == 429
    accepting = headers | {"accept": "application/json"}
    assert request(bakery, "POST", "chat/site", json=body, headers=accepting).status_code == 202
    other.release()
    assert request(bakery, "POST", "chat/site", json=body, headers=headers).status_code == 200
    assert list_leases(stage) == []


def test_a_repeated_prompt_is_read_by_a_reader_that_returns(
    stage: Stage, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reader may have left, which a row says. Only a returning one takes that back at once."""
    returns: list[bool] = []
    monkeypatch.setattr(
        AbandonmentWatcher, "add_reader", lambda _watcher, _turn, *, is_returning: returns.append(is_returning)
    )
    body = {"conversationId": stage.conversation.id, "prompt": "Go"}
    for _ in range(2):
        request(bakery, "POST", "chat/site", json=body, headers={"idempotency-key": "k"})
    assert returns == [False, True]
