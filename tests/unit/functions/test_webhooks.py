"""Webhooks over HTTP: registered, changed, removed; their deliveries are listed and repeated."""

import json
from typing import Any

import pytest

from fermata.aws.message_queue import MessageQueue
from fermata.aws.resources import Resources
from fermata.drivers.transport import url_guard
from fermata.webhooks.delivery import Delivery, store_attempt
from functions.credentials import app
from functions.deliver_webhooks import app as deliver_webhooks
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

WEBHOOKS = "/admin/api/ai/webhooks"
ADMIN = ["ai.chat", "ai.tools.manage"]
NEW = {"url": "https://server.example/hook", "events": ["turnEnd"]}
DELIVERY = Delivery(event_id="turn-1.7.0", event="turnEnd", turn="turn-1", entry=7, index=0, at_ms=1_800_000_000_000)


@pytest.fixture
def bakery(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> TokenSigner:
    addresses = {"server.example": ("93.184.216.34",), "internal.example": ("10.0.0.5",)}
    monkeypatch.setattr(url_guard, "_resolve", lambda host, _port: addresses[host])
    return make_tenant(resources, "bakery")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    messages: list[Any] = []
    monkeypatch.setattr(MessageQueue, "send", lambda _self, message, delay_seconds=0: messages.append(message))
    monkeypatch.setattr(Resources, "_client", _without_queue(Resources._client))
    return messages


def _without_queue(original: Any) -> Any:
    return lambda self, service: None if service == "sqs" else original(self, service)


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    headers = signer.bearer_headers(**({"capabilities": ADMIN} | claims))
    answer = app.handler(make_proxy_event(method, path, headers, body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def add(signer: TokenSigner, **members: Any) -> Any:
    status, body = send("POST", WEBHOOKS, signer, NEW | members)
    assert status == 201, body
    return body


def test_a_webhook_is_added_listed_changed_and_removed(resources: Resources, bakery: TokenSigner) -> None:
    body = add(bakery)
    webhook = body["webhook"]
    assert body["signingSecret"].startswith("whsec_")
    assert send("GET", WEBHOOKS, bakery) == (200, {"webhooks": [webhook]})
    items = resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"]
    assert body["signingSecret"] not in str(items)
    one = f"{WEBHOOKS}/{webhook['id']}"
    status, changed = send("PATCH", one, bakery, {"enabled": False, "events": ["toolRequest", "approvalRequest"]})
    assert (status, changed["webhook"]["enabled"]) == (200, False)
    assert changed["webhook"]["events"] == ["toolRequest", "approvalRequest"]
    assert send("DELETE", one, bakery) == (200, {"ok": True})
    assert send("GET", WEBHOOKS, bakery) == (200, {"webhooks": []})
    assert send("DELETE", one, bakery)[0] == 404


def test_without_a_choice_a_webhook_gets_all_events(bakery: TokenSigner) -> None:
    assert add(bakery, events=None)["webhook"]["events"] == ["toolRequest", "approvalRequest", "turnEnd"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"url": "https://internal.example/"}, "not public"),
        ({"url": "http://server.example/"}, "https"),
        ({"url": "nothing"}, "URL"),
        ({"events": ["everything"]}, "events"),
        ({"secret": "x"}, "secret"),
    ],
)
def test_what_may_not_be_registered_is_refused(bakery: TokenSigner, members: Any, says: str) -> None:
    status, body = send("POST", WEBHOOKS, bakery, NEW | members)
    assert status == 400
    assert says in body["error"]


def test_an_address_is_checked_when_it_changes_too(bakery: TokenSigner) -> None:
    one = f"{WEBHOOKS}/{add(bakery)['webhook']['id']}"
    assert send("PATCH", one, bakery, {"url": "https://internal.example/"})[0] == 400


def test_only_administrators_manage_webhooks_of_their_tenant(resources: Resources, bakery: TokenSigner) -> None:
    webhook_id = add(bakery)["webhook"]["id"]
    assert send("GET", WEBHOOKS, bakery, capabilities=["ai.chat"])[0] == 403
    other = make_tenant(resources, "butcher")
    for method, path in (("PATCH", ""), ("DELETE", ""), ("GET", "/deliveries"), ("POST", "/deliveries/x/redeliver")):
        assert send(method, f"{WEBHOOKS}/{webhook_id}{path}", other, {})[0] == 404


@pytest.mark.parametrize(
    ("event", "right"), [("toolRequest", "ai.tools.write"), ("approvalRequest", "ai.tools.approve")]
)
def test_nobody_lets_a_webhook_answer_what_they_may_not(bakery: TokenSigner, event: str, right: str) -> None:
    """Otherwise whoever manages webhooks approves calls, by a server of their own."""
    less, more = ("ai.tools.manage",), ("ai.tools.manage", right)
    new = NEW | {"events": [event], "mayAnswer": True}
    assert send("POST", WEBHOOKS, bakery, new, capabilities=less)[0] == 403
    status, body = send("POST", WEBHOOKS, bakery, new, capabilities=more)
    assert status == 201
    path = f"{WEBHOOKS}/{body['webhook']['id']}"
    assert send("PATCH", path, bakery, {"url": "https://server.example/mine"}, capabilities=less)[0] == 403
    assert send("PATCH", path, bakery, {"enabled": False}, capabilities=less)[0] == 200
    assert send("PATCH", path, bakery, {"enabled": True}, capabilities=less)[0] == 403
    assert send("PATCH", path, bakery, {"mayAnswer": False, "enabled": True}, capabilities=less)[0] == 200
    assert send("PATCH", path, bakery, {"mayAnswer": True}, capabilities=less)[0] == 403


def test_a_tenant_has_ten_webhooks_at_most(bakery: TokenSigner) -> None:
    for _ in range(10):
        add(bakery)
    assert send("POST", WEBHOOKS, bakery, NEW)[0] == 400


def test_deliveries_are_listed_and_repeated_on_request(
    resources: Resources, bakery: TokenSigner, sent: list[Any]
) -> None:
    webhook_id = add(bakery)["webhook"]["id"]
    failed = DELIVERY.model_copy(update={"state": "failed", "attempts": 3, "status": 500})
    store_attempt(resources, "bakery", webhook_id, failed)
    store_attempt(resources, "bakery", webhook_id, DELIVERY.model_copy(update={"attempts": 2}))  # a late copy
    one = f"{WEBHOOKS}/{webhook_id}/deliveries"
    status, body = send("GET", one, bakery)
    [delivery] = body["deliveries"]
    assert (status, delivery["state"], delivery["attempts"], delivery["status"]) == (200, "failed", 3, 500)
    assert send("POST", f"{one}/{delivery['id']}/redeliver", bakery) == (202, {"ok": True})
    assert sent == [
        {"tenant": "bakery", "turn": "turn-1", "entry": 7, "webhook": webhook_id, "index": 0, "redelivery": True}
    ]
    assert send("POST", f"{one}/unknown/redeliver", bakery)[0] == 404


def test_a_message_that_cannot_be_handled_is_reported_and_the_others_are_handled(deployed: None) -> None:
    bodies = ("{}", '{"tenant":"a","turn":"b","entry":1}')
    records = [
        {"messageId": f"{number}", "body": body, "receiptHandle": f"receipt-{number}"}
        for number, body in enumerate(bodies, 1)
    ]
    answer = deliver_webhooks.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
