"""The whole path of the planner's client through the local cloud: draft, chats in two phases, plans, history."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e.chat_session import open_http
from tests.e2e.demo_model_client import DemoModelClient, script_marker, tool_call_step

PAGES = [
    {
        "id": "p_home",
        "slug": "/",
        "title": "Home",
        "blocks": [{"id": "b_hero", "type": "Hero", "props": {"heading": "Welcome"}}],
    },
    {
        "id": "p_faq",
        "slug": "/faq",
        "title": "FAQ",
        "blocks": [{"id": "b", "type": "RichText", "props": {"body": "x"}}],
    },
]
CHANGE = "Change the heading to “Good morning”"


class PlannerClient:
    """Does what a client of the planner does, in one session."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self.http, self.session = http, session

    def post(self, path: str, **members: Any) -> httpx.Response:
        return self.http.post(f"/planner/{path}", json={"session": self.session, **members})

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(f"/planner/{path}", params={"session": self.session, **query})

    def bootstrap(self) -> None:
        assert self.post("draft/bootstrap", pages=PAGES).json()["status"] == "bootstrapped"

    def chat(self, message: str = "", **members: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.post("chat", message=message, **members).json()
        return answer

    def start(self, message: str, **members: Any) -> str:
        return str(self.post("chat/start", message=message, **members).json()["streamId"])

    def stream(self, stream_id: str, after: int | None = None) -> list[dict[str, Any]]:
        """Return the frames of a stream without its heartbeats, which come when the next frame takes a second."""
        query = {"streamId": stream_id} | ({} if after is None else {"afterSeq": str(after)})
        response = self.http.get("/planner/chat/stream", params=query)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        frames = [json.loads(part.removeprefix("data: ")) for part in response.text.split("\n\n") if part]
        return [frame for frame in frames if frame["type"] != "heartbeat"]

    def heading(self) -> str:
        return str(self.get("draft/pages", slug="/").json()["blocks"][0]["props"]["heading"])


@pytest.fixture
def planner(cloud: LocalCloud, request: pytest.FixtureRequest) -> Iterator[PlannerClient]:
    with open_http(cloud) as http:
        client = PlannerClient(http, re.sub(r"\W+", "-", request.node.name)[:100])
        client.bootstrap()
        yield client


def test_a_plan_is_streamed_applied_and_read_again(planner: PlannerClient) -> None:
    stream = planner.start(CHANGE)
    shown = planner.stream(stream)
    types = [frame["type"] for frame in shown]
    assert types[0] == "status"
    assert [one for one in types if one in ("plan_meta", "op_candidate", "op_applied", "summary_token", "final")] == [
        "plan_meta",
        "op_candidate",
        "op_applied",
        "summary_token",
        "final",
    ]
    result = shown[-1]["result"]
    assert (result["status"], result["undoSlug"]) == ("applied", "/")
    assert result["normalizedFrom"][0]["submitted"]["operation"] == "Update Block"
    assert planner.heading() == "Good morning"
    assert planner.stream(stream, shown[-2]["_seq"]) == [shown[-1]]
    assert planner.http.get("/planner/chat/stream", params={"streamId": stream}).status_code == 410
    assert planner.post("chat/cancel", streamId=stream).json() == {"status": "already_terminal"}


def test_a_destructive_plan_waits_and_is_applied_once(planner: PlannerClient) -> None:
    waiting = planner.chat("Delete the page /faq")
    assert waiting["status"] == "plan_ready"
    assert waiting["destructiveReasons"]
    assert planner.get("draft/slugs").json()["slugs"] == ["/", "/faq"]
    [plan] = planner.get("plans").json()["plans"]
    assert (plan["pendingPlanId"], plan["approvalId"]) == (waiting["pendingPlanId"], waiting["approvalId"])
    wrong = planner.post("chat", executionMode="apply_pending_plan", pendingPlanId="other")
    assert (wrong.status_code, wrong.json()["status"]) == (409, "validation_error")
    agreed = {"executionMode": "apply_pending_plan", "pendingPlanId": waiting["pendingPlanId"]}
    first, again = planner.chat(**agreed), planner.chat(**agreed)
    assert first == again
    assert first["status"] == "applied"
    assert planner.get("draft/slugs").json()["slugs"] == ["/"]
    none = planner.post("chat", executionMode="apply_pending_plan")
    assert (none.status_code, none.json()["status"]) == (409, "needs_clarification")


def test_a_chain_goes_on_with_its_next_step_and_ends(planner: PlannerClient, cloud: LocalCloud) -> None:
    assert cloud.model is not None
    heading = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "One"}}
    plan = {"summary_for_user": "Begun.", "ops": [heading], "next_steps": [CHANGE]}
    with closing(DemoModelClient(cloud.model.url)) as model:
        marker = script_marker(model.add_script(tool_call_step(("submit_edit_plan", plan))))
        begun = planner.chat(f"Rework the site. {marker}")
    continuation = begun["continuation"]
    assert (continuation["currentStep"], continuation["totalSteps"], continuation["nextStepLabel"]) == (1, 2, CHANGE)
    going_on = {"executionMode": "continue_chain", "continuationChainId": continuation["chainId"]}
    assert planner.post("chat", **going_on | {"continuationChainId": "other"}).status_code == 409
    done = planner.chat(**going_on)
    assert (done["status"], done.get("continuation")) == ("applied", None)
    assert planner.heading() == "Good morning"
    assert planner.post("chat", **going_on).status_code == 409


def test_a_chain_that_is_not_held_is_not_continued(planner: PlannerClient) -> None:
    for members in ({}, {"continuationChainId": "other"}):
        refused = planner.post("chat", executionMode="continue_chain", **members)
        assert (refused.status_code, refused.json()["status"]) == (409, "validation_error")


def test_a_plan_that_waits_is_discarded_or_applied_by_a_stream(planner: PlannerClient) -> None:
    planned = planner.chat(CHANGE, executionMode="plan_only")
    assert planned["status"] == "plan_ready"
    assert planner.post("chat", executionMode="discard_pending_plan", pendingPlanId="other").status_code == 409
    assert planner.chat(executionMode="discard_pending_plan")["status"] == "canceled"
    planned = planner.chat(CHANGE, executionMode="plan_only")
    stream = planner.start("", executionMode="apply_pending_plan", pendingPlanId=planned["pendingPlanId"])
    frames = planner.stream(stream)
    assert [frame["type"] for frame in frames] == ["final"]
    assert frames[0]["result"]["status"] == "applied"
    assert planner.stream(stream, 0) == frames
    assert planner.heading() == "Good morning"


def test_history_goes_back_and_forth(planner: PlannerClient) -> None:
    patch = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "Two"}}
    applied = planner.post("ops", ops=[patch]).json()
    assert applied["previewVersion"] == 2
    assert planner.get("history/status", slug="/").json()["undoCount"] == 2
    assert planner.post("history/undo", slug="/").json()["status"] == "applied"
    assert planner.heading() == "Welcome"
    assert planner.post("history/redo", slug="/").json()["previewVersion"] == 4
    assert planner.post("history/redo", slug="/").status_code == 400
    assert planner.post("history/restore", version=1).json()["restoredVersion"] == 1
    assert planner.heading() == "Welcome"
    assert [entry["kind"] for entry in planner.get("history/log").json()["entries"]] == [
        "restore",
        "redo",
        "undo",
        "ops",
        "bootstrap",
    ]


def test_a_draft_is_published_and_brought_back(planner: PlannerClient) -> None:
    site = {"siteId": planner.session[-40:].lower()}
    assert planner.post("draft/bootstrap", pages=PAGES, **site).status_code == 200
    assert planner.get("publish/diff", **site).json()["added"] == ["/", "/faq"]
    assert planner.post("publish", **site).json()["number"] == 1
    assert planner.post("publish", **site).json()["number"] == 1
    planner.post("ops", ops=[{"op": "remove_page", "pageSlug": "/faq"}], **site)
    assert planner.get("publish/diff", **site).json()["removed"] == ["/faq"]
    assert planner.get("published/pages", slug="/faq", **site).json()["title"] == "FAQ"
    assert planner.post("restore/snapshot", number=1, **site).json()["slugs"] == ["/", "/faq"]
    assert planner.get("publish/log", **site).json()["restorable"] == [1]


def test_a_session_has_three_chats_at_most_and_each_is_run_once(planner: PlannerClient) -> None:
    streams = [planner.start(CHANGE) for _ in range(3)]
    assert planner.post("chat/start", message=CHANGE).status_code == 429
    assert planner.post("chat/cancel", streamId=streams[0]).json() == {"status": "cancel_requested"}
    assert planner.http.get("/planner/chat/stream", params={"streamId": streams[0]}).status_code == 410
    planner.stream(streams[1])
    assert planner.post("chat/start", message=CHANGE).status_code == 200


@pytest.mark.parametrize(
    ("path", "members", "status"),
    [
        ("chat", {"slug": "/"}, 400),
        ("chat", {"executionMode": "continue_chain"}, 409),
        ("chat/cancel", {"streamId": "x"}, 404),
        ("ops", {"ops": []}, 400),
        ("ops", {"ops": [{"op": "paint", "pageSlug": "/"}]}, 400),
        ("ops", {"ops": [{"op": "remove_page", "pageSlug": "/none"}]}, 404),
        ("history/undo", {}, 400),
        ("chat/start", {"message": "x", "siteContext": "y" * 600_000}, 413),
    ],
)
def test_wrong_requests_are_refused(planner: PlannerClient, path: str, members: dict[str, Any], status: int) -> None:
    assert planner.post(path, **members).status_code == status


def test_an_unknown_stream_is_gone(planner: PlannerClient) -> None:
    assert planner.http.get("/planner/chat/stream", params={"streamId": "x"}).status_code == 410
