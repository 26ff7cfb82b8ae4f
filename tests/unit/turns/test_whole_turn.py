"""A turn from prompt to done, by hand."""

from fermata.credentials import last_used
from fermata.domain.events import DoneEvent, ToolCallEvent, ToolResultEvent, UsageEvent
from tests.unit.turns.stage import OK, Stage, reply_with_calls, reply_with_text, tool_call_block


def test_a_text_turn_says_its_text_its_usage_and_done(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Good morning.")
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "text", "context", "usage", "done"]
    assert stage.streamed_text() == "Good morning."
    assert stage.claim() is None


def test_a_browser_call_is_requested_answered_and_told_to_the_model(stage: Stage) -> None:
    stage.start_turn("Add a footer")
    insert = tool_call_block("insertHtml", parentId="root", html="<footer></footer>")
    stage.script_replies(reply_with_calls(insert, text="I add it."), "There it is.")
    assert stage.run_workflow() == "waiting"
    assert stage.show_turn()["status"] == "paused"
    assert [asked["toolName"] for asked in stage.show_turn()["pending"]] == ["insertHtml"]
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    told = [
        event for event in stage.events() if isinstance(event, ToolCallEvent | ToolResultEvent | UsageEvent | DoneEvent)
    ]
    assert [event.type for event in told] == ["toolCall", "toolResult", "usage", "done"]
    assert isinstance(told[2], UsageEvent)
    assert told[2].prompt_tokens == 20
    assert [message.role for message in stage.driver.requests[1].messages] == ["user", "assistant", "tool"]
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", "tool", "assistant"]


def test_server_calls_are_run_here_and_the_next_round_begins_in_the_same_invocation(stage: Stage) -> None:
    stage.start_turn("Which documents are there?", snapshot={"site": {"pages": []}, "page": {"id": "p"}})
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "None.")
    invocation = stage.advance_turn()
    assert stage.event_types()[-1] == "done"
    assert stage.workflow.sent == [(invocation.token, "finish", 0)]
    assert len(stage.driver.requests) == 2


def test_calls_of_one_round_are_asked_one_after_the_other(stage: Stage) -> None:
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


def test_a_tenants_own_limit_of_rounds_is_kept(stage: Stage) -> None:
    stage.start_turn(max_rounds=1)
    stage.script_replies("Done without tools.")
    assert stage.run_workflow() == "finished"
    assert stage.driver.requests[0].call_tools is False


def test_a_credential_that_answered_is_known_to_be_used(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Good morning.")
    stage.run_workflow()
    (shown,) = last_used.list_credential_views(stage.resources, stage.caller)
    assert shown["lastUsedAt"] == stage.resources.clock.now_iso()


def test_what_a_driver_warns_of_is_told_and_the_turn_goes_on(stage: Stage) -> None:
    stage.start_turn("A very long prompt")
    *said, reply = reply_with_text("Done.")
    stage.script_replies([*said, reply.model_copy(update={"warning": "The server cut the prompt."})])
    assert stage.run_workflow() == "finished"
    assert stage.event_types() == ["bridgeReady", "roundStarted", "text", "context", "warning", "usage", "done"]
