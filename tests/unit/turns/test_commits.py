"""Commits: START, ROUND, ANSWER and END are one transaction each; between them only text is appended."""

from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.aws.blob_store import BLOB_THRESHOLD_BYTES
from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.events import ContextEvent, ToolCallEvent, ToolRequestEvent, ToolResultEvent
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta, TokenUsage
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import LARGE_TEXT, make_server_tool
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine

TRANSACT = "dynamodb.TransactWriteItems"


def record_commits(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the kinds of items in every transaction from now on."""
    commits: list[list[str]] = []
    write = stage.resources.tables.write_items

    def watched(*parts: Any) -> None:
        kinds = [f"{part.table} {_kind(part)}" for part in parts]
        if "bridges e" in kinds:
            commits.append(sorted(kind for kind in kinds if not kind.startswith("usage") or kind == "usage request"))
        write(*parts)

    monkeypatch.setattr(stage.resources.tables, "write_items", watched)
    return commits


def _kind(part: Any) -> str:
    sk = part.item["sk"] if hasattr(part, "item") else part.sk
    kind = str(sk.partition("#")[0])
    return "request" if part.table == "usage" and kind[0] == "r" and kind[1:].isdigit() else kind


def test_a_turn_consists_of_start_round_answer_end_and_text(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = record_commits(stage, monkeypatch)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n"), text="I delete."), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    counts = ["bridges counts", "bridges counts"]
    start = [*counts, "bridges e", "bridges turn", "conversations m", "conversations meta"]
    alone = ["bridges e"]
    a_round = ["bridges e", "bridges p", "conversations m", "usage request"]
    an_answer = ["bridges e", "bridges p", "conversations m"]
    end = [*counts, "bridges e", "bridges turn", "conversations m", "conversations meta", "usage request"]
    assert commits == [start, alone, alone, a_round, an_answer, alone, alone, end]


def test_a_round_streams_its_calls_its_context_and_then_its_request(stage: Stage) -> None:
    stage.start_turn()
    first, second = tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")
    stage.script_replies(reply_with_calls(first, second, text="I delete."))
    stage.run_workflow()
    events = stage.entries()[-1].events
    assert events == (
        ToolCallEvent(tool_call_id=first.tool_call_id, tool_name="deleteNode", input={"nodeId": "a"}),
        ToolCallEvent(tool_call_id=second.tool_call_id, tool_name="deleteNode", input={"nodeId": "b"}),
        ContextEvent(prompt_tokens=10, context_tokens=10, cache_read_tokens=0, cache_creation_tokens=0),
        events[3],
    )
    assert isinstance(events[3], ToolRequestEvent)
    assert stage.load_messages()[-1].content == (TextBlock(text="I delete."), first, second)


def test_unwritten_text_is_part_of_the_next_commit(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            TextDelta(text="I "),
            TextDelta(text="delete."),
            *reply_with_calls(tool_call_block("deleteNode", nodeId="a"))[-1:],
        ]
    )
    stage.run_workflow()
    assert [event.type for event in stage.entries()[-1].events] == ["text", "toolCall", "context", "toolRequest"]


def test_a_refused_call_is_answered_in_the_same_commit(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(
            tool_call_block("no_such_tool"),
            tool_call_block("deleteNode", node="wrong"),
            tool_call_block("deleteNode", nodeId="n"),
        )
    )
    stage.run_workflow()
    events = [event for event in stage.entries()[-1].events if isinstance(event, ToolResultEvent | ToolRequestEvent)]
    assert [event.type for event in events] == ["toolResult", "toolResult", "toolRequest"]
    assert stage.load_pause().calls[2].state == "requested"
    stage.answer_request(OK)
    stage.script_replies("Done.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_a_call_with_malformed_arguments_is_never_run(stage: Stage) -> None:
    ran: list[str] = []
    stage.add_tools(make_server_tool("bake", lambda: ran.append("ran")))
    stage.start_turn()
    cut_off = ToolCallBlock(tool_call_id="c1", tool_name="bake", input={}, malformed=True)
    stage.script_replies(reply_with_calls(cut_off, tool_call_block("list_documents")), "Done.")
    stage.run_workflow()
    assert ran == []
    assert stage.event_types().count("toolResult") == 2
    invariants.check_invariants(stage)


INSTANT = make_server_tool("peek", lambda: None, idempotent=True, instant=True)


def entry_types(stage: Stage) -> list[list[str]]:
    return [[event.type for event in entry.events] for entry in stage.entries()]


def test_the_last_server_result_of_a_round_starts_the_next_in_the_same_commit(stage: Stage) -> None:
    stage.add_tools(make_server_tool("look", lambda: None, idempotent=True))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("look")), "Done.")
    stage.run_workflow()
    assert ["toolResult", "roundStarted"] in entry_types(stage)
    invariants.check_invariants(stage)


def test_a_round_of_instant_tools_is_one_commit_without_a_pause(stage: Stage) -> None:
    stage.add_tools(INSTANT)
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("peek"), tool_call_block("no_such_tool"), tool_call_block("peek")), "Done."
    )
    stage.run_workflow()
    expected_types = ["toolCall"] * 3 + ["context"] + ["toolResult"] * 3 + ["roundStarted"]
    assert expected_types in entry_types(stage)
    assert not [item for item in stage.stored_items(stage.turn.pk) if item["sk"].startswith("p#")]
    assert [message.role for message in stage.load_messages()] == ["user", "assistant", *["tool"] * 3, "assistant"]
    invariants.check_invariants(stage)


def test_an_instant_tool_behind_a_browser_call_waits(stage: Stage) -> None:
    stage.add_tools(INSTANT)
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("peek"), tool_call_block("deleteNode", nodeId="n"), tool_call_block("peek"))
    )
    stage.run_workflow()
    assert entry_types(stage)[-1] == ["toolCall"] * 3 + ["context", "toolResult", "toolRequest"]
    stage.script_replies("Done.")
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage)


def test_without_enough_time_the_next_round_runs_in_another_invocation(stage: Stage) -> None:
    stage.add_tools(INSTANT)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("peek")), "Done.")
    invocation = stage.advance_turn(seconds=300)
    assert stage.workflow.outputs[invocation.token]["next"] == "round"
    assert entry_types(stage)[-1] == ["toolCall", "context", "toolResult"]
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage)


def test_a_commit_that_was_never_written_leaves_nothing(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n"), text="I delete."))
    stage.faults.lose_request(TRANSACT, contains="toolCall")
    with pytest.raises(ConnectionClosedError):
        stage.advance_turn()
    assert [message.role for message in stage.load_messages()] == ["user"]
    assert not stage.ledger_rows()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n"), text="I delete."), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    invariants.check_invariants(stage)


@pytest.mark.parametrize("kind", ["reply", "call", "answer", "result", "prompt"])
def test_large_content_is_in_the_bucket_before_the_commit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An item may have 400 KB, a transaction 4 MB; every write stays far below."""
    client: Any = stage.resources.tables._client
    sizes: list[int] = []
    transact = client.transact_write_items

    def measured(**request: Any) -> Any:
        sizes.extend(len(str(item)) for item in request["TransactItems"])
        return transact(**request)

    monkeypatch.setattr(client, "transact_write_items", measured)
    stage.add_tools(make_server_tool("count", lambda: {"html": "y" * 90_000}, idempotent=True))
    stage.start_turn(LARGE_TEXT if kind == "prompt" else "Do something")
    first = {
        "call": tool_call_block("insertHtml", parentId="root", html=LARGE_TEXT),
        "result": tool_call_block("count"),
    }.get(kind, tool_call_block("deleteNode", nodeId="n"))
    stage.script_replies(reply_with_calls(first), LARGE_TEXT if kind == "reply" else "Done.")
    stage.run_workflow()
    if first.tool_name != "count":
        stage.answer_request({"ok": True, "data": {"html": LARGE_TEXT}} if kind == "answer" else OK)
        stage.run_workflow()
    assert max(sizes) < 2 * BLOB_THRESHOLD_BYTES
    invariants.check_invariants(stage)


def test_sixty_calls_in_one_response_are_one_round(stage: Stage) -> None:
    stage.add_tools(make_server_tool("count", lambda: {"html": "y" * 5_000}, idempotent=True))
    stage.start_turn()
    stage.script_replies(reply_with_calls(*(tool_call_block("count") for _ in range(60))), "Done.")
    assert stage.run_workflow() == "finished"
    assert stage.event_types().count("toolCall") == stage.event_types().count("toolResult") == 60
    assert len(stage.results_sent_to_model()) == 60
    invariants.check_invariants(stage)


def test_many_browser_calls_are_requested_one_by_one(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(*(tool_call_block("deleteNode", nodeId=f"n{number}") for number in range(20))), "Done."
    )
    machine = StateMachine(stage)
    machine.run()
    for number in range(20):
        assert stage.tool_requests()[-1].input == {"nodeId": f"n{number}"}
        stage.answer_request(OK)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "Finished"]
    invariants.check_invariants(stage)


def test_messages_take_one_position_per_shown_row(stage: Stage) -> None:
    """Text, every call and every result take one position each; reasoning takes none."""
    stage.start_turn()
    thought = ReasoningBlock(provider="anthropic", model="model-1", payload={"type": "thinking", "thinking": "hm"})
    blocks = (
        thought,
        TextBlock(text="I delete."),
        tool_call_block("deleteNode", nodeId="a"),
        tool_call_block("list_documents"),
    )
    stage.script_replies(
        [
            ReasoningDelta(text="hm"),
            TextDelta(text="I delete."),
            ModelResponse(blocks=blocks, stop=FinishReason.TOOL_CALLS, tokens=TokenUsage(prompt=1)),
        ],
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert [message.position for message in stage.load_messages()] == [0, 1, 4, 5, 6]
    invariants.check_invariants(stage)
