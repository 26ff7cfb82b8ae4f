"""A turn from prompt to done, by hand."""

from fermata.credentials import using
from fermata.words.events import Done, ToolCall, ToolResult, UsageReport
from tests.unit.turns.stage import OK, Stage, call, calls, says


def test_a_text_turn_says_its_text_its_usage_and_done(stage: Stage) -> None:
    stage.start("Hello")
    stage.says("Good morning.")
    assert stage.run() == "finished"
    assert stage.types() == ["bridgeReady", "roundStarted", "text", "context", "usage", "done"]
    assert stage.text() == "Good morning."
    assert stage.claim() is None


def test_a_browser_call_is_requested_answered_and_told_to_the_model(stage: Stage) -> None:
    stage.start("Add a footer")
    insert = call("insertHtml", parentId="root", html="<footer></footer>")
    stage.says(calls(insert, text="I add it."), "There it is.")
    assert stage.run() == "waiting"
    assert stage.look()["status"] == "paused"
    assert [asked["toolName"] for asked in stage.look()["pending"]] == ["insertHtml"]
    stage.answer(OK)
    assert stage.run() == "finished"
    told = [event for event in stage.events() if isinstance(event, ToolCall | ToolResult | UsageReport | Done)]
    assert [event.type for event in told] == ["toolCall", "toolResult", "usage", "done"]
    assert isinstance(told[2], UsageReport)
    assert told[2].prompt_tokens == 20
    assert [message.role for message in stage.driver.asks[1].messages] == ["user", "assistant", "tool"]
    assert [message.role for message in stage.messages()] == ["user", "assistant", "tool", "assistant"]


def test_server_calls_are_run_here_and_the_next_round_begins_in_the_same_invocation(stage: Stage) -> None:
    stage.start("Which documents are there?", snapshot={"site": {"pages": []}, "page": {"id": "p"}})
    stage.says(calls(call("list_documents")), "None.")
    wake = stage.advance()
    assert stage.types()[-1] == "done"
    assert stage.workflow.sent == [(wake.token, "finish", 0)]
    assert len(stage.driver.asks) == 2


def test_calls_of_one_round_are_asked_one_after_the_other(stage: Stage) -> None:
    stage.start()
    first, second = call("deleteNode", nodeId="a"), call("deleteNode", nodeId="b")
    stage.says(calls(first, call("list_documents"), second), "Gone.")
    assert stage.run() == "waiting"
    assert len(stage.requests()) == 1
    stage.answer(OK)
    assert stage.run() == "waiting"
    assert [request.tool_call_id for request in stage.requests()] == [first.tool_call_id, second.tool_call_id]
    stage.answer(OK)
    assert stage.run() == "finished"
    assert stage.types().count("toolResult") == 3


def test_a_tenants_own_limit_of_rounds_is_kept(stage: Stage) -> None:
    stage.start(max_rounds=1)
    stage.says("Done without tools.")
    assert stage.run() == "finished"
    assert stage.driver.asks[0].call_tools is False


def test_a_credential_that_answered_is_known_to_be_used(stage: Stage) -> None:
    stage.start("Hello")
    stage.says("Good morning.")
    stage.run()
    (shown,) = using.views(stage.desk, stage.caller)
    assert shown["lastUsedAt"] == stage.desk.clock.instant()


def test_what_a_driver_warns_of_is_told_and_the_turn_goes_on(stage: Stage) -> None:
    stage.start("A very long prompt")
    *said, reply = says("Done.")
    stage.says([*said, reply.model_copy(update={"warning": "The server cut the prompt."})])
    assert stage.run() == "finished"
    assert stage.types() == ["bridgeReady", "roundStarted", "text", "context", "warning", "usage", "done"]
