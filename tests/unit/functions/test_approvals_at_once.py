"""Several decisions in one request are made for themselves, and what was decided is listed from the trail."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from functions.tool_result import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.turns.approvals.bakery import Bakery
from tests.unit.turns.stage import Stage

APPROVER = {"user": "grace", "capabilities": ["ai.chat", "ai.tools.approve"]}


@pytest.fixture
def bakery(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Bakery:
    bakery = Bakery(Stage(resources, monkeypatch))
    bakery.ask_for(("bake", 1), ("bake", 2), ("bake", 3))
    return bakery


@pytest.fixture
def signer(resources: Resources) -> TokenSigner:
    return make_tenant(resources, "bakery")


def send(signer: TokenSigner, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
    event = make_proxy_event(method, f"/admin/api/ai/{path}", signer.bearer_headers(**APPROVER), body)
    event["queryStringParameters"] = query or None
    answer = app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"])


def decide(signer: TokenSigner, *decisions: dict[str, Any]) -> list[tuple[int, str]]:
    status, body = send(signer, "POST", "approvals", {"decisions": list(decisions)})
    assert status == 200, body
    return [(one["status"], one.get("approval", {}).get("state", "")) for one in body["results"]]


def test_each_decision_of_a_request_is_made_for_itself(bakery: Bakery, signer: TokenSigner) -> None:
    ids = [request.approval_id for request in bakery.requested]
    decisions: list[dict[str, Any]] = [
        {"approvalId": ids[2], "approved": False, "reason": "Too many."},
        {"approvalId": "none.1.0.nonce", "approved": True},
        {"approvalId": ids[1], "approved": True, "input": {"loaves": "many"}},
        {"approvalId": ids[0], "approved": True},
    ]
    assert decide(signer, *decisions) == [(200, "denied"), (404, ""), (400, ""), (200, "approved")]
    assert decide(signer, *decisions) == [(200, "denied"), (404, ""), (400, ""), (200, "approved")]
    assert decide(signer, {"approvalId": ids[0], "approved": False}) == [(409, "")]
    assert bakery.stage.run_workflow() == "waiting"
    assert bakery.oven.baked == [1]


def test_each_refused_decision_of_a_request_is_a_refusal_in_the_log(
    bakery: Bakery, signer: TokenSigner, caplog: pytest.LogCaptureFixture
) -> None:
    decide(signer, {"approvalId": "none.1.0.nonce", "approved": True}, {"approvalId": "x.1.0.n", "approved": True})
    refused = [record.__dict__ for record in caplog.records if getattr(record, "security", False)]
    assert [line["event"] for line in refused] == ["security.id_refused"] * 2


def test_the_newest_decisions_are_listed_in_pages(bakery: Bakery, signer: TokenSigner) -> None:
    ids = [request.approval_id for request in bakery.requested]
    decide(signer, *({"approvalId": id_, "approved": False, "reason": f"No {id_}"} for id_ in ids))
    status, first = send(signer, "GET", "approval-decisions", limit="2")
    assert status == 200
    assert [one["approvalId"] for one in first["decisions"]] == [ids[2], ids[1]]
    assert first["decisions"][0]["reason"] == f"No {ids[2]}"
    assert (first["decisions"][0]["askedFor"], first["decisions"][0]["decidedBy"]) == ("ada", "grace")
    _, second = send(signer, "GET", "approval-decisions", limit="2", cursor=first["nextCursor"])
    assert [one["approvalId"] for one in second["decisions"]] == [ids[0]]
    assert "nextCursor" not in second
    assert send(signer, "GET", "approval-decisions", cursor="x")[0] == 400


def test_decisions_of_other_workspaces_and_scopes_are_not_listed(
    bakery: Bakery, signer: TokenSigner, resources: Resources
) -> None:
    decide(signer, {"approvalId": bakery.requested[0].approval_id, "approved": True})
    assert send(make_tenant(resources, "garage"), "GET", "approval-decisions") == (200, {"decisions": []})
