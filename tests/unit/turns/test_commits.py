"""Commits (design §4): START, ROUND, ANSWER and END are one transaction each; between them only text is appended."""

from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.aws.blobs import LARGE as LARGE_BYTES
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.events import Context, ToolCall, ToolRequest, ToolResult
from fermata.words.model import ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.unit.turns import truth
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import LARGE, server_tool
from tests.unit.turns.stage import OK, Stage, call, calls

TRANSACT = "dynamodb.TransactWriteItems"


def commits(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What every append from now on is committed with, by the kinds of its items."""
    made: list[list[str]] = []
    write = stage.desk.tables.write

    def watched(*parts: Any) -> None:
        kinds = [f"{part.table} {_kind(part)}" for part in parts]
        if "bridges e" in kinds:
            made.append(sorted(kind for kind in kinds if not kind.startswith("usage") or kind == "usage request"))
        write(*parts)

    monkeypatch.setattr(stage.desk.tables, "write", watched)
    return made


def _kind(part: Any) -> str:
    sk = part.item["sk"] if hasattr(part, "item") else part.sk
    kind = str(sk.partition("#")[0])
    return "request" if part.table == "usage" and kind[0] == "r" and kind[1:].isdigit() else kind


def test_a_turn_is_start_round_answer_end_and_the_text_in_between(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commits(stage, monkeypatch)
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="n"), text="I delete."), "Done.")
    stage.run()
    stage.answer(OK)
    stage.run()
    start = ["bridges e", "bridges turn", "conversations m", "conversations meta"]
    alone = ["bridges e"]
    a_round = ["bridges e", "bridges p", "conversations m", "usage request"]
    an_answer = ["bridges e", "bridges p", "conversations m"]
    end = ["bridges e", "bridges turn", "conversations m", "conversations meta", "usage request"]
    assert made == [start, alone, alone, a_round, an_answer, alone, alone, end]


def test_a_round_tells_its_calls_then_its_context_then_asks(stage: Stage) -> None:
    stage.start()
    first, second = call("deleteNode", nodeId="a"), call("deleteNode", nodeId="b")
    stage.says(calls(first, second, text="I delete."))
    stage.run()
    told = stage.entries()[-1].events
    assert told == (
        ToolCall(tool_call_id=first.tool_call_id, tool_name="deleteNode", input={"nodeId": "a"}),
        ToolCall(tool_call_id=second.tool_call_id, tool_name="deleteNode", input={"nodeId": "b"}),
        Context(prompt_tokens=10, context_tokens=10, cache_read_tokens=0, cache_creation_tokens=0),
        told[3],
    )
    assert isinstance(told[3], ToolRequest)
    assert stage.messages()[-1].content == (TextBlock(text="I delete."), first, second)


def test_text_that_waits_goes_into_the_commit_that_follows(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="I "), TextDelta(text="delete."), *calls(call("deleteNode", nodeId="a"))[-1:]])
    stage.run()
    assert [event.type for event in stage.entries()[-1].events] == ["text", "toolCall", "context", "toolRequest"]


def test_a_call_whose_outcome_is_known_at_once_is_answered_in_the_same_commit(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("no_such_tool"), call("deleteNode", node="wrong"), call("deleteNode", nodeId="n")))
    stage.run()
    told = [event for event in stage.entries()[-1].events if isinstance(event, ToolResult | ToolRequest)]
    assert [event.type for event in told] == ["toolResult", "toolResult", "toolRequest"]
    assert stage.pause().calls[2].state == "requested"
    stage.answer(OK)
    stage.says("Done.")
    stage.run()
    truth.check(stage)


def test_malformed_arguments_are_never_run(stage: Stage) -> None:
    ran: list[str] = []
    stage.learn(server_tool("bake", lambda: ran.append("ran")))
    stage.start()
    cut_off = ToolCallBlock(tool_call_id="c1", tool_name="bake", input={}, malformed=True)
    stage.says(calls(cut_off, call("list_documents")), "Done.")
    stage.run()
    assert ran == []
    assert stage.types().count("toolResult") == 2
    truth.check(stage)


INSTANT = server_tool("peek", lambda: None, idempotent=True, instant=True)


def entries_of(stage: Stage) -> list[list[str]]:
    return [[event.type for event in entry.events] for entry in stage.entries()]


def test_the_last_answer_of_a_round_begins_the_next_in_the_same_commit(stage: Stage) -> None:
    stage.learn(server_tool("look", lambda: None, idempotent=True))
    stage.start()
    stage.says(calls(call("look")), "Done.")
    stage.run()
    assert ["toolResult", "roundStarted"] in entries_of(stage)
    truth.check(stage)


def test_a_round_of_instant_tools_is_one_commit_and_stores_no_pause(stage: Stage) -> None:
    stage.learn(INSTANT)
    stage.start()
    stage.says(calls(call("peek"), call("no_such_tool"), call("peek")), "Done.")
    stage.run()
    told = ["toolCall"] * 3 + ["context"] + ["toolResult"] * 3 + ["roundStarted"]
    assert told in entries_of(stage)
    assert not [item for item in stage.stored(stage.turn.pk) if item["sk"].startswith("p#")]
    assert [message.role for message in stage.messages()] == ["user", "assistant", *["tool"] * 3, "assistant"]
    truth.check(stage)


def test_an_instant_tool_waits_its_turn_behind_a_call_of_the_browsers(stage: Stage) -> None:
    stage.learn(INSTANT)
    stage.start()
    stage.says(calls(call("peek"), call("deleteNode", nodeId="n"), call("peek")))
    stage.run()
    assert entries_of(stage)[-1] == ["toolCall"] * 3 + ["context", "toolResult", "toolRequest"]
    stage.says("Done.")
    stage.answer(OK)
    assert stage.run() == "finished"
    truth.check(stage)


def test_where_no_time_is_left_to_ask_the_next_round_is_handed_on(stage: Stage) -> None:
    stage.learn(INSTANT)
    stage.start()
    stage.says(calls(call("peek")), "Done.")
    wake = stage.advance(seconds=300)
    assert stage.workflow.outputs[wake.token]["next"] == "round"
    assert entries_of(stage)[-1] == ["toolCall", "context", "toolResult"]
    assert stage.run() == "finished"
    truth.check(stage)


def test_a_commit_that_never_arrived_leaves_nothing_of_itself(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="n"), text="I delete."))
    stage.seam.never_arrives(TRANSACT, contains="toolCall")
    with pytest.raises(ConnectionClosedError):
        stage.advance()
    assert [message.role for message in stage.messages()] == ["user"]
    assert not stage.ledger()
    stage.says(calls(call("deleteNode", nodeId="n"), text="I delete."), "Done.")
    stage.run()
    stage.answer(OK)
    stage.run()
    truth.check(stage)


@pytest.mark.parametrize("kind", ["reply", "call", "answer", "result", "prompt"])
def test_what_is_large_lies_in_the_bucket_before_it_is_committed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An item has 400 KB, a transaction 4 MB; nothing of ours comes near."""
    client: Any = stage.desk.tables._client
    sizes: list[int] = []
    transact = client.transact_write_items

    def measured(**request: Any) -> Any:
        sizes.extend(len(str(item)) for item in request["TransactItems"])
        return transact(**request)

    monkeypatch.setattr(client, "transact_write_items", measured)
    stage.learn(server_tool("count", lambda: {"html": "y" * 90_000}, idempotent=True))
    stage.start(LARGE if kind == "prompt" else "Do something")
    first = {"call": call("insertHtml", parentId="root", html=LARGE), "result": call("count")}.get(
        kind, call("deleteNode", nodeId="n")
    )
    stage.says(calls(first), LARGE if kind == "reply" else "Done.")
    stage.run()
    if first.tool_name != "count":
        stage.answer({"ok": True, "data": {"html": LARGE}} if kind == "answer" else OK)
        stage.run()
    assert max(sizes) < 2 * LARGE_BYTES
    truth.check(stage)


def test_sixty_calls_in_one_reply_are_one_round(stage: Stage) -> None:
    stage.learn(server_tool("count", lambda: {"html": "y" * 5_000}, idempotent=True))
    stage.start()
    stage.says(calls(*(call("count") for _ in range(60))), "Done.")
    assert stage.run() == "finished"
    assert stage.types().count("toolCall") == stage.types().count("toolResult") == 60
    assert len(stage.read_by_the_model()) == 60
    truth.check(stage)


def test_many_calls_of_the_browser_are_asked_one_by_one(stage: Stage) -> None:
    stage.start()
    stage.says(calls(*(call("deleteNode", nodeId=f"n{number}") for number in range(20))), "Done.")
    machine = Machine(stage)
    machine.run()
    for number in range(20):
        assert stage.requests()[-1].input == {"nodeId": f"n{number}"}
        stage.answer(OK)
    assert machine.run() == "Finished"
    assert machine.visited == ["RunRound", "RunRound", "Finished"]
    truth.check(stage)


def test_positions_follow_the_contracts_rows(stage: Stage) -> None:
    """Text is a row, every call is one, every result is one; what only the provider reads again shows nothing."""
    stage.start()
    thought = ReasoningBlock(provider="anthropic", model="model-1", payload={"type": "thinking", "thinking": "hm"})
    blocks = (thought, TextBlock(text="I delete."), call("deleteNode", nodeId="a"), call("list_documents"))
    stage.says(
        [
            ReasoningDelta(text="hm"),
            TextDelta(text="I delete."),
            Reply(blocks=blocks, stop=Stop.TOOL_CALLS, tokens=Tokens(prompt=1)),
        ],
        "Done.",
    )
    stage.run()
    stage.answer(OK)
    stage.run()
    assert [message.position for message in stage.messages()] == [0, 1, 4, 5, 6]
    truth.check(stage)
