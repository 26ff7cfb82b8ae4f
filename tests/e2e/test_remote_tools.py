"""Remote tools and webhooks on the local cloud: called, answered later, told about; all through real queues."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.signed_requests.signature import sign_request
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from tests.e2e.chat_session import ChatSession
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import ALL_CAPABILITIES, make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.waiting import wait_until

CALL = ("pim_getProduct", {"sku": "SKU-123"})


@pytest.fixture
def vendor() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


@pytest.fixture
def secret(session: ChatSession, vendor: ScriptedToolServer) -> Iterator[str]:
    """The signing secret of the tool `pim.getProduct`, which is registered for one test."""
    registration = {"manifest": make_manifest_json(), "endpoint": vendor.url, "staticHeaders": {"x-api-key": "k"}}
    yield session.client.register_remote_tool(registration)["signingSecret"]
    session.client.remove_remote_tool("pim.getProduct")


def test_a_remote_tool_is_called_and_verifies_the_call(
    session: ChatSession, vendor: ScriptedToolServer, secret: str
) -> None:
    vendor.script_answer({"data": {"title": "Bread"}})
    outcome = session.run_turn(tool_call_step(CALL), text_step("It is bread."))
    assert outcome.status == "done"
    [call] = vendor.calls
    call.verify(secret)
    assert call.headers["x-api-key"] == "k"
    [badge] = outcome.view.tool_calls
    assert (badge.name, badge.state) == ("pim_getProduct", "ok")


def test_a_result_that_comes_later_lets_the_turn_go_on(
    session: ChatSession, cloud: LocalCloud, vendor: ScriptedToolServer, secret: str
) -> None:
    vendor.script_answer({}, 202)
    reader = session.start_turn(tool_call_step(CALL), text_step("It is bread."))
    wait_until(lambda: bool(vendor.calls), "the tool is called")
    callback = vendor.calls[0].body["callback"]
    assert callback["url"] == cloud.url + callback["path"]
    body = json.dumps({name: callback[name] for name in ("tenant", "bridgeId", "requestId")} | {"data": 1}).encode()
    headers = sign_request([secret], "msg_1", time.time(), body)
    for _ in range(2):
        answer = httpx.post(cloud.url + callback["path"], content=body, headers=headers, trust_env=False)
        assert answer.status_code == 200, answer.text
    types = [event["type"] for event in reader.wait_for_end()]
    assert types[-1] == "done"
    assert types.count("toolResult") == 1


@pytest.fixture
def quiet_session(cloud: LocalCloud, resources: LocalResources, model: DemoModelClient) -> Iterator[ChatSession]:
    """A session of a tenant that has had no turn yet, of whose end a webhook could be told late."""
    signer = make_tenant(resources, "quiet", issuer="http://127.0.0.1/quiet")
    caller = Caller(tenant="quiet", user="ada", capabilities=frozenset((*CAPABILITIES, *EDITOR_CAPABILITIES)))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "site", credential.id, "fermata-demo")
    session = ChatSession(cloud, resources, model, signer.sign_token("ada", ALL_CAPABILITIES), tenant="quiet")
    yield session
    session.close()


def test_a_webhook_is_told_of_a_turn_and_tried_again(quiet_session: ChatSession, vendor: ScriptedToolServer) -> None:
    session = quiet_session
    added = session.client.add_webhook(vendor.url, events=["turnEnd"])
    try:
        vendor.script_answer(b"", 503)
        vendor.script_answer(b"", 204)
        assert session.run_turn(text_step("Good morning.")).status == "done"
        wait_until(lambda: len(vendor.calls) >= 2, "the webhook is told, and told again")
        for call in vendor.calls:
            call.verify(added["signingSecret"])
        assert len({call.headers["webhook-id"] for call in vendor.calls}) == 1
        assert vendor.calls[0].body["data"]["bridgeId"] == session.bridge
        deliveries: list[Any] = []

        def is_delivered() -> bool:
            deliveries[:] = session.client.list_deliveries(added["webhook"]["id"])
            return [delivery["state"] for delivery in deliveries] == ["delivered"]

        wait_until(is_delivered, "the delivery is recorded")
        session.client.redeliver_event(added["webhook"]["id"], deliveries[0]["id"])
        wait_until(lambda: len(vendor.calls) >= 3, "the event is delivered again")
    finally:
        session.client.remove_webhook(added["webhook"]["id"])
