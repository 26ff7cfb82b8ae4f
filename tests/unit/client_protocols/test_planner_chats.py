"""Chats of the planner that are sent again: the same Idempotency-Key means the same chat, whatever the draft is now."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from fermata.credentials import scope_defaults
from fermata.domain.errors import Conflict
from fermata.planner_api import chat_streams, route_chat
from fermata.planner_api.chat_store import settle_chat, store_chat
from fermata.planner_api.sessions import open_session
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.pending_plan import load_pending_plan
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn_log import read_end_type
from fermata.wire.renderers.planner_sse import FRAMES_PER_EVENT
from tests.unit.client_protocols.conftest import Json, Requester
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

PAGE = {"id": "p", "slug": "/", "title": "Home", "blocks": [{"id": "b", "type": "Hero", "props": {"heading": "Hi"}}]}


class PlannerChats:
    """Sends chats of one session with an Idempotency-Key."""

    def __init__(self, stage: Stage, requester: Requester) -> None:
        self.stage, self.requester = stage, requester

    def post(self, key: str = "", **members: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        body = {"session": "s", **members}
        return self.requester.send("POST", "/admin/api/ai/planner/chat", json=body, headers=headers)

    def script_plan(self, heading: str, **members: Any) -> None:
        operation = {"op": "update_props", "pageSlug": "/", "blockId": "b", "patch": {"heading": heading}}
        plan = {"summary_for_user": heading, "ops": [operation]} | members
        self.stage.script_replies(reply_with_calls(tool_call_block("submit_edit_plan", **plan)))


@pytest.fixture
def chats(stage: Stage, requester: Requester) -> PlannerChats:
    scope_defaults.set_default(stage.resources, stage.caller, "planner", stage.credential.id, "model-1")
    made = PlannerChats(stage, requester)
    page_plan: Json = {"summary_for_user": "Begun.", "ops": [{"op": "create_page", "page": PAGE}]}
    stage.script_replies(reply_with_calls(tool_call_block("submit_edit_plan", **page_plan)))
    assert made.post(message="Begin with a page").json()["status"] == "applied"
    return made


def test_a_repeated_chat_is_answered_by_its_turn_although_the_draft_has_changed(chats: PlannerChats) -> None:
    chats.script_plan("One")
    first = chats.post("k", message="Change the heading")
    again = chats.post("k", message="Change the heading")
    assert (first.json()["status"], again.status_code) == ("applied", 200)
    assert again.json() == first.json()


def test_a_repeated_step_of_a_chain_does_not_plan_the_step_after_it(chats: PlannerChats) -> None:
    chats.script_plan("One", next_steps=["Second step", "Third step"])
    chain = chats.post(message="Rework it").json()["continuation"]["chainId"]
    going_on = {"executionMode": "continue_chain", "continuationChainId": chain}
    chats.script_plan("Two")
    first = chats.post("step", **going_on)
    again = chats.post("step", **going_on)
    assert first.json()["continuation"]["currentStep"] == 2
    assert (again.status_code, again.json()) == (200, first.json())


def test_the_last_step_of_a_chain_is_answered_again(chats: PlannerChats) -> None:
    chats.script_plan("One", next_steps=["Second step"])
    chats.post(message="Rework it")
    chats.script_plan("Two")
    first = chats.post("last", executionMode="continue_chain")
    again = chats.post("last", executionMode="continue_chain")
    assert (first.json()["status"], again.json()) == ("applied", first.json())


def test_a_repeated_request_does_not_apply_the_plan_that_it_has_made(chats: PlannerChats) -> None:
    chats.script_plan("One", ops=[{"op": "remove_block", "pageSlug": "/", "blockId": "b"}])
    asked = {"message": "Remove the block", "executionMode": "apply_pending_plan"}
    first = chats.post("k", **asked)
    again = chats.post("k", **asked)
    assert (first.json()["status"], again.json()) == ("plan_ready", first.json())


@pytest.mark.parametrize(("choice", "status"), [("reject", 409), ("interrupt", 200)])
def test_a_chat_says_whether_it_ends_the_one_that_runs(
    chats: PlannerChats, monkeypatch: pytest.MonkeyPatch, choice: str, status: int
) -> None:
    workflow: Any = chats.stage.workflow
    with monkeypatch.context() as patch:
        patch.setattr(type(workflow), "start_execution", lambda *_, **__: None)
        location = open_session(chats.stage.resources, chats.stage.caller, "s", None)
        prompt = replace(chats.stage.make_prompt("Slow"), scope="planner", conversation_id=location.conversation)
        running = start_turn(chats.stage.resources, chats.stage.caller, prompt).turn
    chats.script_plan("One")
    answer = chats.post(message="Change the heading", whenBusy=choice)
    assert answer.status_code == status, answer.text
    assert read_end_type(chats.stage.resources, running) == (None if status == 409 else "cancelled")


def test_a_key_of_another_chat_is_refused(chats: PlannerChats) -> None:
    chats.script_plan("One")
    assert chats.post("k", message="Change the heading").status_code == 200
    assert chats.post("k", message="Change it again").status_code == 409


def test_a_plan_that_is_only_planned_waits_and_is_applied_once_by_its_id(chats: PlannerChats) -> None:
    chats.script_plan("One")
    held = chats.post(message="Change the heading", executionMode="plan_only").json()
    assert (held["status"], "previewVersion" in held) == ("plan_ready", False)
    plan = held["pendingPlanId"]
    other = chats.post(executionMode="apply_pending_plan", pendingPlanId="other")
    assert (other.status_code, other.json()["status"]) == (409, "validation_error")
    applied = [chats.post(executionMode="apply_pending_plan", pendingPlanId=plan) for _ in range(2)]
    assert [one.status_code for one in applied] == [200, 200]
    assert [one.json()["status"] for one in applied] == ["applied", "applied"]
    assert applied[0].json()["previewVersion"] == applied[1].json()["previewVersion"]


def test_without_a_plan_that_waits_there_is_nothing_to_apply_unless_a_message_asks_for_one(chats: PlannerChats) -> None:
    nothing = chats.post(executionMode="apply_pending_plan", message=" ")
    assert (nothing.status_code, nothing.json()["status"]) == (409, "needs_clarification")
    chats.script_plan("One")
    afresh = chats.post(executionMode="apply_pending_plan", message="Change the heading")
    assert (afresh.status_code, afresh.json()["status"]) == (200, "applied")


def test_a_plan_that_waits_is_dropped_by_its_id(chats: PlannerChats) -> None:
    chats.script_plan("One")
    plan = chats.post(message="Change the heading", executionMode="plan_only").json()["pendingPlanId"]
    assert chats.post(executionMode="discard_pending_plan", pendingPlanId="other").status_code == 409
    dropped = chats.post(executionMode="discard_pending_plan", pendingPlanId=plan)
    assert (dropped.status_code, dropped.json()["status"]) == (200, "canceled")
    assert chats.post(executionMode="apply_pending_plan", pendingPlanId=plan).status_code == 409


def test_a_chat_that_is_cancelled_while_it_starts_does_not_go_on(
    chats: PlannerChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources, caller, started = chats.stage.resources, chats.stage.caller, []
    conversation = open_session(resources, caller, "s", None).conversation
    chat = store_chat(resources, caller, conversation, {"session": "s", "message": "Change it"}, "")

    def cancel_first(*args: Any) -> Any:
        assert settle_chat(resources, caller, chat, "cancelled")
        started.append(start_turn(*args))
        return started[0]

    monkeypatch.setattr(type(chats.stage.workflow), "start_execution", lambda *_, **__: None)
    monkeypatch.setattr(chat_streams, "start_turn", cancel_first)
    answer = chats.requester.send("GET", f"/admin/api/ai/planner/chat/stream?streamId={chat.id}")
    assert answer.status_code == 410, answer.text
    assert read_end_type(resources, started[0].turn) == "cancelled"


def test_a_reader_that_is_ahead_of_the_log_of_a_stream_is_told_so(chats: PlannerChats) -> None:
    """It would wait for its end for ever otherwise: each frame of the log has a number that it has seen."""
    resources, caller = chats.stage.resources, chats.stage.caller
    conversation = open_session(resources, caller, "s", None).conversation
    chat = store_chat(resources, caller, conversation, {"session": "s", "message": "Change it"}, "")
    chats.script_plan("One")
    path = f"/admin/api/ai/planner/chat/stream?streamId={chat.id}"
    frames = chats.requester.send("GET", path).text.split("\n\n")
    last = json.loads(frames[-2].removeprefix("data: "))["_seq"]
    assert chats.requester.send("GET", f"{path}&afterSeq={last}").status_code == 200
    ahead = chats.requester.send("GET", f"{path}&afterSeq={last + FRAMES_PER_EVENT}")
    assert (ahead.status_code, ahead.json()["code"]) == (400, "logRewound")
    assert chats.requester.send("GET", f"{path}&afterSeq=0").text.split("\n\n")[-2] == frames[-2]


def test_a_plan_that_is_dropped_again_leaves_the_chain_that_has_begun_since(chats: PlannerChats) -> None:
    chats.script_plan("One", next_steps=["Second step"])
    plan = chats.post(message="Rework it", executionMode="plan_only").json()["pendingPlanId"]
    drop = {"executionMode": "discard_pending_plan", "pendingPlanId": plan}
    assert chats.post(**drop).json()["status"] == "canceled"
    assert chats.post(executionMode="continue_chain").status_code == 409
    chats.script_plan("Two", next_steps=["Another step"])
    assert chats.post(message="Rework it otherwise").json()["continuation"]
    assert chats.post(**drop).json()["summary"] == "There was no plan to discard."
    chats.script_plan("Three")
    assert chats.post(executionMode="continue_chain").json()["status"] == "applied"


def test_a_stream_that_is_opened_again_does_not_apply_the_plan_that_its_chat_has_made(
    chats: PlannerChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first function has started the turn and died. Nobody has seen the plan that waits."""
    resources, caller = chats.stage.resources, chats.stage.caller
    conversation = open_session(resources, caller, "s", None).conversation
    body = {"session": "s", "message": "Plan first, then change it", "executionMode": "apply_pending_plan"}
    chat = store_chat(resources, caller, conversation, body, "")
    chats.script_plan("One")
    path = f"/admin/api/ai/planner/chat/stream?streamId={chat.id}"
    with monkeypatch.context() as dying:
        dying.setattr(chat_streams, "settle_chat", lambda *_, **__: (_ for _ in ()).throw(Conflict("It died.")))
        assert chats.requester.send("GET", path).status_code == 409
    again = chats.requester.send("GET", path)
    assert (again.status_code, "The plan waits for you." in again.text) == (200, True)
    assert load_pending_plan(resources, DraftLocation(caller.tenant, conversation)) is not None


def test_a_chat_whose_twin_is_faster_joins_it_and_applies_no_plan_that_nobody_has_seen(
    chats: PlannerChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"message": "Plan first, then change it", "executionMode": "apply_pending_plan"}
    load, twins = load_pending_plan, list[httpx.Response]()
    chats.script_plan("One")

    def load_behind_twin(*place: Any) -> Any:
        monkeypatch.setattr(route_chat, "load_pending_plan", load)
        twins.append(chats.post("k", **sent))
        return load(*place)

    monkeypatch.setattr(route_chat, "load_pending_plan", load_behind_twin)
    assert chats.post("k", **sent).json() == twins[0].json()
    assert twins[0].json()["status"] == "plan_ready"
