"""Streams to chat clients, byte for byte: client tools, approvals, denials, errors and resumed streams.

The files in `golden/` hold the streams with names in place of ids and instants. A change of a file is a change of what
deployed clients parse, so nothing writes them anew: whoever changes one has read it.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from fermata.domain.model_io import TextDelta
from tests.unit.client_protocols.conftest import Requester, SdkChat
from tests.unit.client_protocols.test_agui_runs import Thread
from tests.unit.turns.approvals.bakery import Bakery
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

GOLDEN = Path(__file__).parent / "golden"
LOCATE = {"name": "locate", "description": "Finds out where the user is.", "parameters": {"type": "object"}}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def name_ids(stage: Stage, texts: list[str], **ids: str) -> str:
    """Return the streams of a scenario with names in place of what differs from run to run."""
    text = "=== next response ===\n".join(texts).replace(stage.turn.id, "TURN")
    for name, value in ids.items():
        text = text.replace(value, name.upper())
    text = re.sub(r"TURN\.\d+\.\d+\.[A-Za-z0-9_-]+", "APPROVAL", text)
    text = re.sub(r'"promptTokens":\d+', '"promptTokens":0', text)  # of a failed request it is estimated
    return re.sub(r"[0-9a-f]{64}", "HASH", _INSTANT.sub("INSTANT", text))


def check(name: str, text: str) -> None:
    """Compare a scenario with its file."""
    expected = (GOLDEN / f"{name}.txt").read_text("utf-8")
    assert text == expected, name


@pytest.mark.parametrize("sdk", ["5", "6", "7"])
class TestAiSdk:
    @pytest.fixture(autouse=True)
    def open_chat(self, requester: Requester, sdk: str) -> None:
        self.sdk, self.requester = sdk, requester
        self.chat = SdkChat(requester, url=f"/api/agent/home/site?sdk={sdk}")

    def check(self, scenario: str, stage: Stage, *texts: str, **ids: str) -> None:
        check(f"sdk{self.sdk}_{scenario}", name_ids(stage, list(texts), **ids))

    def test_a_client_tool_and_the_step_behind_its_result(self, stage: Stage) -> None:
        call = tool_call_block("locate", of="shop")
        stage.script_replies(reply_with_calls(call, text="I look."), "Two streets away.")
        first = self.chat.say("How far is it?", tools=[LOCATE])
        self.chat.output(call.tool_call_id, {"city": "Ghent"})
        self.check("client_tool", stage, first.text, self.chat.post().text, call=call.tool_call_id)

    @pytest.mark.parametrize("approved", [True, False])
    def test_an_approval_and_what_follows_its_decision(self, stage: Stage, approved: bool) -> None:
        Bakery(stage)
        bake = tool_call_block("bake", loaves=3)
        stage.script_replies(reply_with_calls(bake), "Done.")
        first = self.chat.say("Bake")
        if self.sdk == "5":  # its client knows no approvals, and the decision goes to the service's own list
            self.check("approval_request", stage, first.text, call=bake.tool_call_id)
            return
        self.chat.decide(bake.tool_call_id, approved=approved, reason="As you like.")
        name = "approved" if approved else "denied"
        self.check(name, stage, first.text, self.chat.post().text, call=bake.tool_call_id)

    def test_an_error_behind_visible_text(self, stage: Stage) -> None:
        stage.script_replies([TextDelta(text="Hel"), make_provider_error("provider_request", retryable=False)])
        self.check("error", stage, self.chat.say("Hello").text)

    def test_a_stream_that_is_resumed_where_the_client_has_to_act(self, stage: Stage) -> None:
        done, open_call = tool_call_block("list_documents"), tool_call_block("locate")
        stage.script_replies(reply_with_calls(done, text="I look."), reply_with_calls(open_call))
        self.chat.say("Where?", tools=[LOCATE], snapshot={"site": {"pages": []}, "page": {"id": "p"}})
        resumed = self.requester.send("GET", f"/api/agent/home/site/{self.chat.id}/stream?sdk={self.sdk}")
        assert resumed.status_code == 200
        self.check("resume", stage, resumed.text, done=done.tool_call_id, open=open_call.tool_call_id)


class TestAgui:
    @pytest.fixture(autouse=True)
    def open_thread(self, requester: Requester) -> None:
        self.thread = Thread(requester)

    def send(self, **members: Any) -> str:
        """Send the thread's messages, and return the raw stream, whose events the thread has applied."""
        responses: list[str] = []
        post = self.thread.post

        def keep(**sent: Any) -> Any:
            response = post(**sent)
            responses.append(response.text)
            return response

        self.thread.post = keep  # type: ignore[method-assign]
        self.thread.run(**members)
        self.thread.post = post  # type: ignore[method-assign]
        return responses[0]

    def test_a_tool_of_the_front_end(self, stage: Stage) -> None:
        call = tool_call_block("locate", of="shop")
        stage.script_replies(reply_with_calls(call, text="I look."), "Two streets away.")
        first = self.send(text="How far is it?", tools=[LOCATE])
        self.thread.answer(call.tool_call_id, '{"city": "Ghent"}')
        second = self.send(tools=[LOCATE])
        check("agui_client_tool", name_ids(stage, [first, second], call=call.tool_call_id))

    @pytest.mark.parametrize("approved", [True, False])
    def test_an_interrupt_and_its_resume(self, stage: Stage, approved: bool) -> None:
        Bakery(stage)
        bake = tool_call_block("bake", loaves=3)
        stage.script_replies(reply_with_calls(bake), "Done.")
        first = self.send(text="Bake")
        [interrupt] = re.findall(r'"interrupts":\[\{"id":"([^"]+)"', first)
        answer = {"interruptId": interrupt, "status": "resolved", "payload": {"approved": approved}}
        second = self.send(resume=[answer])
        name = "agui_approved" if approved else "agui_denied"
        check(name, name_ids(stage, [first, second], call=bake.tool_call_id))

    def test_an_error(self, stage: Stage) -> None:
        stage.script_replies([make_provider_error("provider_request", retryable=False)])
        check("agui_error", name_ids(stage, [self.send(text="Hello")]))
