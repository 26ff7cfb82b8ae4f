"""A call waits for a person on the local cloud: in Hold, over HTTP, and with a prompt behind it."""

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession, open_http
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.waiting import wait_until


@pytest.fixture
def asking(session: ChatSession) -> Iterator[httpx.Client]:
    """A client of a workspace whose policy asks about every call."""
    with open_http(session.cloud) as http:
        assert http.put("/approval-policy", json={"rules": [{"effect": "ask"}]}).status_code == 200
        yield http
        http.put("/approval-policy", json={}).raise_for_status()


def test_a_call_waits_for_a_person_runs_when_approved_and_the_queued_prompt_follows(
    session: ChatSession, asking: httpx.Client
) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("There it is."))
    [approval] = wait_until(lambda: asking.get("/approvals").json()["approvals"], "an approval")
    assert approval["toolName"] == INSERT_CALL[0]
    assert asking.get(f"/bridges/{session.bridge}").json()["approvals"][0]["approvalId"] == approval["approvalId"]
    body = {"conversationId": session.conversation, "prompt": "And then?", "whenBusy": "enqueue"}
    queued = asking.post(f"/chat/{session.scope}", json=body, headers={"accept": "application/json"})
    assert (queued.status_code, queued.json()["queuedPrompt"]["state"]) == (202, "waiting")
    decision = {"approved": True, "inputHash": approval["inputHash"]}
    assert asking.post(f"/approvals/{approval['approvalId']}", json=decision).json()["approval"]["state"] == "approved"
    assert asking.post(f"/approvals/{approval['approvalId']}", json={"approved": False}).status_code == 409
    request = reader.wait_for_event("toolRequest")
    session.client.post_tool_result(session.bridge, str(request["requestId"]), OK_RESULT)
    assert reader.wait_for_end()[-1]["type"] == "done"
    queue = f"/conversations/{session.conversation}/queue"
    [started] = wait_until(
        lambda: [prompt for prompt in asking.get(queue).json()["prompts"] if prompt["state"] == "started"], "a start"
    )
    assert started["bridgeId"] != session.bridge
