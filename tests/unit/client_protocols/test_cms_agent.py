"""Clients of the CMS agent's own protocol ask, decide, and read their sessions (decision 0453)."""

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from fermata.client_protocols import client_turns
from fermata.client_protocols.cms_session_log import describe_cms_log
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.read_document import find_document_by_slug, read_document
from fermata.credentials import scope_defaults
from fermata.domain.errors import TooManyRequests
from fermata.domain.messages import Message, UsageSoFar
from fermata.domain.model_io import TextDelta
from fermata.domain.use_limits import DEFAULT_USER_LIMITS, CallerLimits
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest
from fermata.wire.http.routing import RequestContext, Routes
from functions.api import app as api
from functions.tool_result import app as tool_result
from tests.shared_cases.cms_cases import read_cms_cases
from tests.unit.client_protocols.conftest import Json, Requester
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block
from tests.unit.turns.test_cms_turns import SHOP, add_space

STREAM, GENERATE, SESSIONS = "/v1/agent/stream", "/v1/agent/generate", "/v1/agent/sessions"
GOLDEN_CMS = Path(__file__).parent / "golden" / "cms_denied.txt"
ROUTES_OF_SESSIONS: Routes = [*api.router.routes, *tool_result.router.routes]
APPROVAL_CASES = {case["id"]: case for case in read_cms_cases("approval")}


@dataclass
class CmsClient:
    """Sends requests as a client of the protocol does."""

    stage: Stage
    requester: Requester

    def stream(self, prompt: str, **members: Any) -> list[tuple[str, Json]]:
        response = self.requester.send("POST", STREAM, json={"prompt": prompt} | members)
        assert response.status_code == 200, response.text
        return read_named_events(response)

    def generate(self, prompt: str, **members: Any) -> httpx.Response:
        return self.requester.send("POST", GENERATE, json={"prompt": prompt} | members)

    def ask(self, prompt: str, **members: Any) -> Json:
        """Return the data of a whole answer."""
        response = self.generate(prompt, **members)
        assert response.status_code == 200, response.text
        data: Json = response.json()["data"]
        return data

    def follow(self, trace_id: str) -> httpx.Response:
        return self.requester.send("GET", f"{STREAM}/{trace_id}")

    def send(self, method: str, path: str, body: Json | None = None, **query: str) -> tuple[int, Any]:
        """Send a request to the functions that answer at once."""
        signed = self.requester.signer.bearer_headers(capabilities=self.requester.capabilities)
        headers = {name.lower(): value for name, value in signed.items()} | {"content-type": "application/json"}
        request = HttpRequest("r", method, path, headers, query, json.dumps(body).encode() if body is not None else b"")
        response = handle_request(self.stage.resources, ROUTES_OF_SESSIONS, request)
        return response.status, response.body

    def decide(self, approval_id: str, *, approved: bool, reason: str = "") -> tuple[int, Any]:
        return self.send("POST", f"/v1/agent/approval/{approval_id}", {"approved": approved, "reason": reason})


def read_named_events(response: httpx.Response) -> list[tuple[str, Json]]:
    frames = [frame for frame in response.text.split("\n\n") if frame and not frame.startswith(":")]
    pairs = [re.fullmatch(r"event: ([a-z-]+)\ndata: (.+)", frame) for frame in frames]
    assert all(pairs), frames
    return [(pair[1], json.loads(pair[2])) for pair in pairs if pair]


@pytest.fixture
def client(stage: Stage, requester: Requester) -> CmsClient:
    """A client of a workspace with one space, in which a post waits to be published."""
    add_space(stage, SHOP)
    content = DocumentContent(slug="rye", title="Rye")
    create_document(stage.resources, SHOP, "post", ContentAuthor("ada"), content, document_id="rye")
    scope_defaults.set_default(stage.resources, stage.caller, "cms", stage.credential.id, "model-1")
    capabilities = (*requester.capabilities, "ai.content.write", "ai.tools.approve")
    return CmsClient(stage, Requester(requester.signer, tuple(dict.fromkeys(capabilities))))


def publish_rye(client: CmsClient) -> Json:
    call = tool_call_block("cms_publishPost", postSlug="rye")
    client.stage.script_replies(reply_with_calls(call, text="I publish it."), "Done.")
    return client.ask("Publish rye")


def is_rye_published(client: CmsClient) -> bool:
    post = read_document(client.stage.resources, SHOP, DocumentKey("post", "rye"))
    assert post.content
    return post.content.status.value == "published"


def test_a_prompt_changes_content_and_is_answered_with_named_events(client: CmsClient) -> None:
    call = tool_call_block("cms_createPage", name="About")
    client.stage.script_replies(reply_with_calls(call, text="I create it."), "It is there.")
    events = client.stream("Create a page", cmsTarget={"siteId": "shop", "environmentId": "main"}, toolsEnabled=True)
    page = find_document_by_slug(client.stage.resources, SHOP, "page", "about")
    assert [name for name, _ in events] == [
        *("log", "model-info", "user-prompt", "step-start", "text-delta", "tool-call", "tool-result"),
        *("step-finish", "step-completed", "step-start", "text-delta", "step-finish", "step-completed"),
        *("finish", "result", "done"),
    ]
    by_name = dict(events)
    ids = {"toolCallId": call.tool_call_id, "toolName": "cms_createPage"}
    assert by_name["model-info"] == {"modelId": "model-1", "pricing": None}
    finished = [data for name, data in events if name == "step-finish"]
    assert [(one["stepNumber"], one["usage"]["totalTokens"], one["finishReason"]) for one in finished] == [
        (1, 15, "tool-calls"),
        (2, 15, "stop"),
    ]
    assert all(one["duration"] >= 0 for one in finished)
    assert by_name["tool-call"] == ids | {"args": {"name": "About"}}
    assert by_name["tool-result"]["result"]["page"]["id"] == page.id
    assert by_name["finish"] == {"finishReason": "stop", "usage": by_name["result"]["usage"], "toolCallsCount": 1}
    assert by_name["result"]["text"] == "It is there."
    assert by_name["done"] == {"traceId": client.stage.turn.id, "sessionId": client.stage.turn.conversation}


def test_a_session_goes_on_under_its_id_or_the_name_that_its_client_gave_it(client: CmsClient) -> None:
    client.stage.script_replies("Hello.", "Again.", "And again.", "Who?")
    name = "5b0a2c6e-6df1-4c40-9c6f-0d0d6a3d5b11"
    first = client.ask("Hi", sessionId=name)
    assert client.ask("Hi", sessionId=name)["sessionId"] == first["sessionId"]
    assert client.ask("Hi", sessionId=first["sessionId"])["sessionId"] == first["sessionId"]
    assert client.ask("Hi")["sessionId"] != first["sessionId"]
    assert [first["finishReason"], first["usage"]["totalTokens"]] == ["stop", 15]


def test_a_tool_that_fails_is_an_event_with_its_code_and_the_stream_goes_on(client: CmsClient) -> None:
    call = tool_call_block("cms_getPage", slug="ghost")
    client.stage.script_replies(reply_with_calls(call), "There is none.")
    by_name = dict(client.stream("Show it"))
    assert by_name["tool-error"]["errorCode"] == "NOT_FOUND"
    assert by_name["tool-error"]["error"]
    assert by_name["result"]["toolResults"][0]["result"]["success"] is False
    assert by_name["finish"]["finishReason"] == "stop"


def test_g281_a_call_that_waits_names_what_a_person_decides_about(client: CmsClient) -> None:
    answer = publish_rye(client)
    fields = APPROVAL_CASES["G281"]["expected"]["event"]["fields"]
    assert answer["finishReason"] == "approval-required"
    [approval] = answer["approvals"]
    assert set(fields) | {"toolCallId"} == approval.keys()
    assert approval["toolName"] == "cms_publishPost"
    assert not is_rye_published(client)


def test_g282_a_denied_call_is_cancelled_with_the_reason_and_not_carried_out(client: CmsClient) -> None:
    case = APPROVAL_CASES["G282"]
    answer = publish_rye(client)
    approval_id = answer["approvals"][0]["approvalId"]
    reason = case["input"]["decision"]["reason"]
    status, decided = client.decide(approval_id, approved=False, reason=reason)
    assert (status, decided["success"], decided["data"]["approvalId"]) == (200, True, approval_id)
    assert decided["data"]["response"]["reason"] == reason
    response = client.follow(answer["traceId"])
    by_name = dict(read_named_events(response))
    assert by_name["tool-result"]["result"] == case["expected"]["tool_result"]
    assert is_rye_published(client) == case["expected"]["executed"]
    call_id = by_name["tool-call"]["toolCallId"]
    check_golden(client.stage, response.text.replace(approval_id, "APPROVAL").replace(call_id, "CALL"))


def check_golden(stage: Stage, text: str) -> None:
    """Compare a stream with its file. A change of the file is a change of what deployed clients parse."""
    text = text.replace(stage.turn.id, "TURN").replace(stage.turn.conversation, "SESSION")
    text = re.sub(r'"duration":\d+', '"duration":0', text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "INSTANT", text)
    assert text == GOLDEN_CMS.read_text("utf-8")


def test_an_approved_call_runs_once_and_a_second_or_unknown_decision_is_invalid(client: CmsClient) -> None:
    answer = publish_rye(client)
    approval_id = answer["approvals"][0]["approvalId"]
    assert client.decide(approval_id, approved=True)[0] == 200
    assert is_rye_published(client)
    assert client.decide(approval_id, approved=True)[0] == 200
    for other in (approval_id, "no-such-approval"):
        status, refused = client.decide(other, approved=False)
        assert (status, refused["success"], refused["error"]["code"]) == (400, False, "VALIDATION_ERROR")


@pytest.mark.parametrize("members", [{}, {"cmsTarget": {"siteId": "ghost"}}, {"sessionId": "mine", "modelId": "m"}])
def test_a_refused_prompt_leaves_no_session(client: CmsClient, members: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_members: Any) -> Any:
        raise TooManyRequests("Too many prompts.")

    if "cmsTarget" not in members:
        monkeypatch.setattr(client_turns, "start_turn", refuse)
    assert client.generate("Hello", **members).status_code in (404, 429)
    assert client.send("GET", SESSIONS)[1]["data"] == []


def test_a_prompt_that_is_sent_again_under_its_key_has_one_session_and_one_answer(client: CmsClient) -> None:
    client.stage.script_replies("Hello.")
    headers = {"Idempotency-Key": "once"}
    first, again = (client.requester.send("POST", GENERATE, json={"prompt": "Hi"}, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert first.json()["data"]["sessionId"] == again.json()["data"]["sessionId"]
    assert len(client.send("GET", SESSIONS)[1]["data"]) == 1


def test_a_failed_turn_is_an_error_event_or_the_status_of_the_whole_answer(client: CmsClient) -> None:
    failing = [TextDelta(text="Hel"), make_provider_error("provider_request", retryable=False)]
    client.stage.script_replies(failing, failing)
    events = client.stream("Hello")
    assert [name for name, _ in events][-2:] == ["error", "done"]
    response = client.generate("Hello")
    assert (response.status_code, response.json()["error"]["code"]) == (502, "EXTERNAL_SERVICE_ERROR")


def test_a_turn_that_uses_up_a_budget_is_told_so_and_not_that_a_provider_has_failed(client: CmsClient) -> None:
    client.stage.script_replies([make_provider_error("budget_exhausted", retryable=False)])
    response = client.generate("Hello")
    assert (response.status_code, response.json()["error"]["code"]) == (402, "BUDGET_EXHAUSTED")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "VALIDATION_ERROR"),
        ({"prompt": "  "}, 400, "VALIDATION_ERROR"),
        ({"prompt": "Hi", "cmsTarget": {"siteId": "ghost"}}, 404, "NOT_FOUND"),
        ({"prompt": "Hi", "cmsTarget": {"siteId": "No site"}}, 400, "VALIDATION_ERROR"),
    ],
)
def test_a_refused_prompt_has_a_code_in_the_envelope(client: CmsClient, body: Json, status: int, code: str) -> None:
    for path in (STREAM, GENERATE):
        response = client.requester.send("POST", path, json=body)
        assert (response.status_code, response.json()["success"]) == (status, False)
        assert response.json()["error"]["code"] == code
        assert response.json()["meta"]["timestamp"]


def test_a_client_reads_in_headers_how_many_prompts_it_has_left(
    client: CmsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = CallerLimits(user=replace(DEFAULT_USER_LIMITS, prompts_per_minute=2))
    monkeypatch.setattr(RequestContext, "caller_limits", property(lambda _context: two))
    client.stage.script_replies("Hello.", "Hello.")
    for path, left in ((STREAM, 1), (GENERATE, 0), (GENERATE, 0)):
        response = client.requester.send("POST", path, json={"prompt": "Hello"})
        told = [response.headers[f"ratelimit-{name}"] for name in ("limit", "remaining", "policy")]
        assert told == ["2", str(left), "2;w=60"]
        assert 0 < int(response.headers["ratelimit-reset"]) <= 60
    assert response.status_code == 429
    assert response.headers["ratelimit-reset"] == response.headers["retry-after"]


def test_the_price_of_the_model_is_told_before_it_answers(client: CmsClient) -> None:
    client.stage.set_price(input_per_mtok=3, output_per_mtok=15)
    client.stage.script_replies("Hello.")
    by_name = dict(client.stream("Hi"))
    assert by_name["model-info"]["pricing"] == {"inputPerMTok": 3, "outputPerMTok": 15, "currency": "USD"}
    assert by_name["step-finish"]["usage"] == by_name["result"]["usage"]
    assert by_name["step-finish"]["usage"]["costUsd"] > 0


def test_who_has_used_up_a_limit_reads_so(client: CmsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    none = CallerLimits(user=replace(DEFAULT_USER_LIMITS, prompts_per_minute=0))
    monkeypatch.setattr(RequestContext, "caller_limits", property(lambda _context: none))
    response = client.generate("Hello")
    assert (response.status_code, response.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert int(response.headers["retry-after"]) > 0


def test_the_trace_of_another_agent_or_user_is_not_found(client: CmsClient) -> None:
    client.stage.script_replies("Hello.")
    client.stage.start_turn()
    assert client.follow(client.stage.turn.id).status_code == 404
    assert client.follow("no-such-trace").json()["error"]["code"] == "NOT_FOUND"


def test_sessions_are_created_listed_changed_and_deleted(client: CmsClient) -> None:
    status, created = client.send("POST", SESSIONS, {"title": "Spring", "cmsTarget": {"siteId": "shop"}})
    session = created["data"]
    assert (status, session["cmsTarget"]) == (201, {"siteId": "shop", "environmentId": "main"})
    add_space(client.stage, SpaceKey("bakery", "blog"))
    change = {"title": "Summer", "modelId": "model-2", "cmsTarget": {"siteId": "blog"}}
    status, changed = client.send("PATCH", f"{SESSIONS}/{session['id']}", change)
    assert (status, changed["data"]["title"], changed["data"]["modelId"]) == (200, "Summer", "model-2")
    assert client.send("GET", SESSIONS)[1]["data"] == [changed["data"]]
    client.stage.script_replies("Hello.")
    client.ask("Hi", sessionId=session["id"])
    assert (client.stage.turn.space, client.stage.turn.model) == ("blog/main", "model-2")
    shown = client.send("GET", f"{SESSIONS}/{session['id']}")[1]["data"]
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]
    for _ in range(2):
        assert client.send("DELETE", f"{SESSIONS}/{session['id']}")[0] == 200
    status, gone = client.send("GET", f"{SESSIONS}/{session['id']}")
    assert (status, gone["error"]["code"]) == (404, "NOT_FOUND")


def test_a_session_remembers_what_it_was_about_and_logs_which_tools_it_called(client: CmsClient) -> None:
    client.stage.script_replies(reply_with_calls(tool_call_block("cms_createPage", name="About")), "Done.")
    answer = client.ask("Create a page")
    path = f"{SESSIONS}/{answer['sessionId']}"
    [entity] = client.send("GET", f"{path}/working-memory")[1]["data"]
    assert (entity["type"], entity["name"], entity["slug"]) == ("page", "About", "about")
    [log] = client.send("GET", f"{path}/logs")[1]["data"]
    assert (log["traceId"], log["prompt"], log["tools"]) == (answer["traceId"], "Create a page", ["cms_createPage"])
    assert [(step["stepNumber"], step["tools"]) for step in log["steps"]] == [(1, ["cms_createPage"]), (2, [])]
    assert [step["usage"]["totalTokens"] for step in log["steps"]] == [15, 15]
    assert log["usage"]["totalTokens"] == answer["usage"]["totalTokens"] == 30
    assert log["durationMs"] >= sum(step["durationMs"] for step in log["steps"]) >= 0


def test_the_log_of_a_session_says_how_long_each_step_has_taken() -> None:
    def store(position: int, role: Any, second: int, tokens: int = 0) -> Message:
        usage = UsageSoFar(prompt_tokens=tokens, completion_tokens=1, cost_usd=Decimal("0.5")) if tokens else None
        at = f"2026-11-29T10:00:{second:02}.250Z"
        return Message(position=position, role=role, content=(), turn="t1", created_at=at, turn_usage=usage)

    of_older_turn = store(0, "assistant", 0, 7).model_copy(update={"turn": "t0"})
    messages = [store(1, "user", 1), store(2, "assistant", 4, 10), store(3, "tool", 9), store(4, "assistant", 11, 30)]
    [log] = describe_cms_log([of_older_turn, *messages])
    assert (log["durationMs"], [step["durationMs"] for step in log["steps"]]) == (10_000, [3_000, 2_000])
    assert [step["usage"]["promptTokens"] for step in log["steps"]] == [10, 20]
    assert [step["usage"]["costUsd"] for step in log["steps"]] == [0.5, 0.0]
    [damaged] = describe_cms_log([messages[0].model_copy(update={"created_at": ""}), messages[1]])
    assert damaged["durationMs"] == 0


def test_an_archived_session_is_listed_apart_until_it_is_taken_back(client: CmsClient) -> None:
    ids = [client.send("POST", SESSIONS, {"title": title})[1]["data"]["id"] for title in ("Spring", "Summer")]
    for archived, apart in ((True, [ids[0]]), (False, [])):
        status, changed = client.send("PATCH", f"{SESSIONS}/{ids[0]}", {"archived": archived})
        assert (status, changed["data"]["archived"], changed["data"]["title"]) == (200, archived, "Spring")
        assert [one["id"] for one in client.send("GET", SESSIONS, archived="true")[1]["data"]] == apart
        listed = {one["id"] for one in client.send("GET", SESSIONS)[1]["data"]}
        assert listed == set(ids) - set(apart)


def test_a_conversation_with_another_agent_is_no_session(client: CmsClient) -> None:
    path = f"{SESSIONS}/{client.stage.conversation.id}"
    for method, body in (("GET", None), ("PATCH", {"title": "Mine"}), ("DELETE", None)):
        status, refused = client.send(method, path, body)
        assert (status, refused["error"]["code"]) == (404, "NOT_FOUND"), method


def test_a_prompt_that_is_sent_again_does_not_bring_back_the_model_of_its_time(client: CmsClient) -> None:
    client.stage.script_replies("One.", "Two.")
    for key, model in (("one", "model-1"), ("two", "model-2"), ("one", "model-1")):
        body = {"prompt": f"Do {key}.", "sessionId": "mine", "modelId": model}
        answer = client.requester.send("POST", GENERATE, json=body, headers={"Idempotency-Key": key})
        assert answer.status_code == 200, answer.text
    assert [request.model for request in client.stage.driver.requests] == ["model-1", "model-2"]
    (session,) = client.send("GET", SESSIONS)[1]["data"]
    assert session["modelId"] == "model-2"
