"""Two clients act on one chat at the same moment, each through a protocol of its own."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fermata.conversations.message_store import load_messages
from fermata.domain.errors import ApiError
from tests.unit.client_protocols.conftest import Requester, SdkChat
from tests.unit.client_protocols.test_switching_dialects import DIALECTS, post_response, post_to_agui, post_to_sdk
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

READ = "read_document"
NAMES = ("native", "sdk", "agui", "responses")


@pytest.fixture(autouse=True)
def faults(stage: Stage, tmp_path: Path) -> None:
    """Let the stage interrupt calls, between which the other client acts."""
    stage._folder = tmp_path


def list_prompts(stage: Stage, conversation: str) -> list[str]:
    """Return the prompts of a conversation, each of which has its answer behind it."""
    messages = load_messages(stage.resources, "bakery", conversation)
    assert [message.role for message in messages] == ["user", "assistant"] * (len(messages) // 2)
    return [block.text for message in messages[::2] for block in message.content if block.kind == "text"]


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", NAMES)
def test_of_two_prompts_at_once_each_gets_its_own_answer_or_is_refused(
    first: str, second: str, stage: Stage, requester: Requester
) -> None:
    conversation = stage.new_conversation().id
    stage.script_replies("One.", "Two.")
    rival: list[httpx.Response] = []
    stage.faults.interrupt(
        "dynamodb.TransactWriteItems", lambda: rival.append(DIALECTS[second](requester, conversation, "Second"))
    )
    answer = DIALECTS[first](requester, conversation, "First")
    assert stage.faults.is_spent
    assert rival[0].status_code == 200
    assert "One." in rival[0].text
    if answer.status_code == 200:
        assert "Two." in answer.text
        assert "One." not in answer.text
        assert list_prompts(stage, conversation) == ["Second", "First"]
    else:
        assert answer.status_code == 409, answer.text
        assert list_prompts(stage, conversation) == ["Second"]
    assert stage.claim() is None


def begin_reading(stage: Stage, chat: SdkChat) -> str:
    """Let a turn wait for the editor; returns the id of the call."""
    call = tool_call_block(READ)
    stage.script_replies(reply_with_calls(call), "It is short.", "Never.")
    chat.say("Read it", tools=[])
    assert len(stage.tool_requests()) == 1
    return call.tool_call_id


@pytest.mark.parametrize("is_same", [True, False])
def test_of_two_answers_to_one_call_the_first_counts(is_same: bool, stage: Stage, chat: SdkChat) -> None:
    call_id = begin_reading(stage, chat)
    data = {"text": "from the editor"}
    chat.output(call_id, data if is_same else {"text": "from the chat"})
    stage.faults.interrupt("dynamodb.TransactWriteItems", lambda: stage.answer_request({"ok": True, "data": data}))
    response = chat.post()
    assert stage.faults.is_spent
    assert stage.results_sent_to_model()[-1].data == data
    assert len(stage.driver.requests) == 2
    assert stage.event_types().count("done") == 1
    if is_same:
        assert chat.text() == "It is short."
    else:
        assert response.status_code == 409
        assert "already answered with a different result" in response.text
        stage.driver.scripts.clear()
        stage.script_replies("Go on.")
        assert chat.say("And now?").status_code == 200
        assert "Go on." in chat.text()


@pytest.mark.parametrize("act", [post_to_agui, post_to_sdk, post_response])
def test_an_answer_comes_while_another_client_ends_the_turn(
    act: Callable[[Requester, str, str], httpx.Response], stage: Stage, chat: SdkChat, requester: Requester
) -> None:
    begin_reading(stage, chat)
    waiting, request = stage.turn, stage.tool_requests()[-1].request_id
    outcomes: list[str] = []

    def answer() -> None:
        try:
            stage.answer_request(OK, request)
            outcomes.append("answered")
        except ApiError as error:
            outcomes.append(str(error.status))

    stage.faults.interrupt("dynamodb.TransactWriteItems", answer)
    response = act(requester, waiting.conversation, "Never mind")
    assert stage.faults.is_spent
    assert outcomes == ["answered"]
    messages = load_messages(stage.resources, "bakery", waiting.conversation)
    calls = [message for message in messages if message.role == "tool"]
    assert len(calls) == 1, "each call has one result"
    assert response.status_code in (200, 409), response.text
    assert len({message.position for message in messages}) == len(messages)
