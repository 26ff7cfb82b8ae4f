"""The contract's cases of a turn (instatic.md §2, §5), each by its number."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.tools.tool import NoInput, Tool, ToolContext
from fermata.wire.ndjson import lines
from fermata.words.blocks import ToolCallBlock, ToolResultBlock
from fermata.words.errors import NotFound
from fermata.words.events import Context, Event, ToolResult, UsageReport
from fermata.words.model import Reply, Stop, Tokens
from tests.unit.turns import truth
from tests.unit.turns.scenes import patient_tool, server_tool
from tests.unit.turns.stage import OK, Stage, call, calls, says

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}
SNAPSHOT = {"site": {"pages": [{"id": "p", "title": "Home", "slug": "index", "rootNodeId": "root"}]}}


def told(stage: Stage) -> list[dict[str, Any]]:
    """What an Instatic browser reads of the turn, event by event."""
    written = b"".join(lines(number, event, "instatic") for number, event in enumerate(stage.events(), 1))
    return [json.loads(line) for line in written.splitlines()]


def of(stage: Stage, kind: type[Any]) -> list[Any]:
    found: list[Event] = [event for event in stage.events() if isinstance(event, kind)]
    return found


@pytest.mark.parametrize("case", ["C043", "C044", "C045"])
def test_c043_to_c045_how_full_the_window_is_whatever_a_provider_calls_its_tokens(stage: Stage, case: str) -> None:
    given, expected = CASES[case]["input"], CASES[case]["expected"]
    read, created = given["cacheReadTokens"], given.get("cacheCreationTokens", 0)
    within, prompt = given["provider"] != "anthropic", given["promptTokens"]
    stage.start()
    said, reply = says("Hello.")
    tokens = Tokens(prompt=prompt, completion=5, cache_read=read, cache_creation=created, cached_within=within)
    stage.says([said, reply.model_copy(update={"tokens": tokens})])
    stage.run()
    assert [(event.prompt_tokens, event.context_tokens) for event in of(stage, Context)] == [(prompt, expected)]
    assert [event.prompt_tokens for event in of(stage, UsageReport)] == [prompt]
    assert (stage.thread().prompt_tokens_total, stage.thread().context_tokens) == (prompt, expected)
    assert [(row["prompt"], row.get("cachedWithin", False)) for row in stage.ledger()] == [(prompt, within)]


def test_c094_two_rounds_two_requests_usage_summed_and_context_for_each(stage: Stage) -> None:
    expected = CASES["C094"]["expected"]
    stage.learn(server_tool("echo", lambda: {"v": 42}), patient_tool("paint", seconds=30))
    blocks = [ToolCallBlock(tool_call_id=f"t_{name}", tool_name=name, input={}) for name in ("echo", "paint")]
    said, _ = says("all done")
    stage.start()
    stage.says(
        [Reply(blocks=tuple(blocks), stop=Stop.TOOL_CALLS, tokens=Tokens(prompt=20, completion=15))],
        [said, Reply(blocks=(), stop=Stop.END, tokens=Tokens(prompt=30, completion=5))],
    )
    stage.run()
    stage.answer(OK)
    stage.run()
    assert len(stage.driver.asks) == expected["provider_requests"]
    results = [message.tool_call_id for message in stage.driver.asks[1].messages if message.role == "tool"]
    assert results == expected["request2_tool_result_ids_in_order"]
    assert [event.ok for event in of(stage, ToolResult)] == expected["toolResult_ok"]
    (usage,) = of(stage, UsageReport)
    assert usage.prompt_tokens == expected["usage"]["promptTokens"]
    assert usage.completion_tokens == expected["usage"]["completionTokens"]
    assert [event.prompt_tokens for event in of(stage, Context)] == expected["context_promptTokens"]


def test_c095_an_unknown_tool_is_an_error_the_model_reads(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("foo")), "Then not.")
    stage.run()
    (result,) = of(stage, ToolResult)
    assert {"ok": result.ok, "error": result.error} == CASES["C095"]["expected"]["toolResult"]
    (block,) = stage.driver.asks[1].messages[-1].content
    assert isinstance(block, ToolResultBlock)
    assert block.error == "Unknown tool: foo"
    assert stage.types()[-1] == "done"


def test_c096_a_text_turn_on_the_wire(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says("Hello.")
    stage.run()
    assert [event["type"] for event in told(stage)] == ["bridgeReady", *CASES["C096"]["expected"]]


def test_c097_a_turn_that_is_stopped_closes_its_calls_and_is_done(stage: Stage) -> None:
    """With `usage` before the end: what was used is never lost."""
    stage.start(dialect="instatic")
    stage.says(calls(call("deleteNode", nodeId="n")))
    stage.run()
    stage.cancel()
    events = told(stage)
    assert [event["type"] for event in events if event["type"] in ("toolCall", "toolResult", "done")] == [
        "toolCall",
        "toolResult",
        "done",
    ]
    (result,) = [event for event in events if event["type"] == "toolResult"]
    assert not result["ok"]
    assert result["error"]
    assert events[-2]["type"] == "usage"


def test_c099_an_answer_that_comes_after_the_stop_is_nobodys(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says(calls(call("deleteNode", nodeId="n")))
    stage.run()
    stage.cancel()
    with pytest.raises(NotFound):
        stage.answer(OK)
    truth.check(stage)


@pytest.mark.parametrize("case", ["C101", "C102"])
def test_c101_and_c102_a_snapshot_that_comes_with_a_result_is_there_before_anybody_goes_on(
    stage: Stage, case: str
) -> None:
    seen: list[Any] = []

    def look(_given: NoInput, context: ToolContext) -> object:
        seen.append(context.snapshot)
        return {}

    looking: Tool = server_tool("look", dict, idempotent=True)
    stage.learn(Tool(**{**vars(looking), "run": look}))
    stage.start(snapshot={"site": {"pages": []}})
    stage.says(calls(call("deleteNode", nodeId="n"), call("look")), "Done.")
    stage.run()
    stage.answer(OK, snapshot=SNAPSHOT if case == "C101" else None)
    stage.run()
    assert seen == [SNAPSHOT if case == "C101" else {"site": {"pages": []}}]
