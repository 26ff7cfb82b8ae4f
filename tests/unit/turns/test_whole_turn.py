"""Whole turns, from prompt to done."""

from fermata.credentials.credential_views import list_credential_views
from fermata.domain.events import DoneEvent, ToolCallEvent, ToolResultEvent, UsageEvent
from tests.unit.turns.stage import OK, Stage, reply_with_calls, reply_with_text, tool_call_block


def test_a_text_turn_streams_text_usage_and_done(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Good morning.")
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "text", "context", "usage", "done"]
    assert stage.streamed_text() == "Good morning."
    assert stage.claim() is None


def test_a_browser_calls_result_reaches_the_model(stage: Stage) -> None:
    stage.start_turn("Add a footer")
    insert = tool_call_block("insertHtml", parentId="root", html="<footer></footer>")
    stage.script_replies(reply_with_calls(insert, text="I add it."), "There it is.")
    assert stage.run_workflow() == "waiting"
    assert stage.show_turn()["status"] == "paused"
    assert [request["toolName"] for request in stage.show_turn()["pending"]] == ["insertHtml"]
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    events = [
        event for event in stage.events() if isinstance(event, ToolCallEvent | ToolResultEvent | UsageEvent | DoneEvent)
    ]
    assert [event.type for event in events] == ["toolCall", "toolResult", "usage", "done"]
    assert isinstance(events[2], UsageEvent)
    assert events[2].prompt_tokens == 20
    assert [message.role for message in stage.driver.requests[1].messages] == ["user", "assistant", "tool"]
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", "tool", "assistant"]


def test_server_calls_and_the_next_round_run_in_one_invocation(stage: Stage) -> None:
    stage.start_turn("Which documents are there?", snapshot={"site": {"pages": []}, "page": {"id": "p"}})
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "None.")
    invocation = stage.advance_turn()
    assert stage.event_types()[-1] == "done"
    assert stage.workflow.sent == [(invocation.token, "finish", 0)]
    assert len(stage.driver.requests) == 2


def test_calls_of_one_round_are_requested_one_after_the_other(stage: Stage) -> None:
    stage.start_turn()
    first, second = tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")
    stage.script_replies(reply_with_calls(first, tool_call_block("list_documents"), second), "Gone.")
    assert stage.run_workflow() == "waiting"
    assert len(stage.tool_requests()) == 1
    stage.answer_request(OK)
    assert stage.run_workflow() == "waiting"
    assert [request.tool_call_id for request in stage.tool_requests()] == [first.tool_call_id, second.tool_call_id]
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert stage.event_types().count("toolResult") == 3


def test_a_tenants_round_limit_applies(stage: Stage) -> None:
    stage.start_turn(max_rounds=1)
    stage.script_replies("Done without tools.")
    assert stage.run_workflow() == "finished"
    assert stage.driver.requests[0].call_tools is False


def test_the_last_use_of_a_credential_is_stored(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Good morning.")
    stage.run_workflow()
    (credential,) = list_credential_views(stage.resources, stage.caller)
    assert credential["lastUsedAt"] == stage.resources.clock.now_iso()


def test_a_drivers_warning_is_streamed_and_the_turn_continues(stage: Stage) -> None:
    stage.start_turn("A very long prompt")
    *deltas, reply = reply_with_text("Done.")
    stage.script_replies([*deltas, reply.model_copy(update={"warning": "The server cut the prompt."})])
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "text", "context", "warning", "usage", "done"]
