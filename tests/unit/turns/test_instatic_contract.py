"""The contract's cases of a turn (instatic.md §2, §5), each by its number."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.domain.blocks import ToolCallBlock, ToolResultBlock
from fermata.domain.errors import NotFound
from fermata.domain.events import ContextEvent, Event, ToolResultEvent, UsageEvent
from fermata.domain.model_io import FinishReason, ModelResponse, TokenUsage
from fermata.tools.tool import NoInput, Tool, ToolContext
from fermata.wire.renderers.ndjson import render_event
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, make_server_tool
from tests.unit.turns.stage import OK, Stage, reply_with_calls, reply_with_text, tool_call_block

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}
SNAPSHOT = {"site": {"pages": [{"id": "p", "title": "Home", "slug": "index", "rootNodeId": "root"}]}}


def told(stage: Stage) -> list[dict[str, Any]]:
    """What an Instatic browser reads of the turn, event by event."""
    written = b"".join(render_event(number, event, "instatic") for number, event in enumerate(stage.events(), 1))
    return [json.loads(line) for line in written.splitlines()]


def of(stage: Stage, kind: type[Any]) -> list[Any]:
    found: list[Event] = [event for event in stage.events() if isinstance(event, kind)]
    return found


@pytest.mark.parametrize("case", ["C043", "C044", "C045"])
def test_c043_to_c045_how_full_the_window_is_whatever_a_provider_calls_its_tokens(stage: Stage, case: str) -> None:
    given, expected = CASES[case]["input"], CASES[case]["expected"]
    read, created = given["cacheReadTokens"], given.get("cacheCreationTokens", 0)
    within, prompt = given["provider"] != "anthropic", given["promptTokens"]
    stage.start_turn()
    said, reply = reply_with_text("Hello.")
    tokens = TokenUsage(prompt=prompt, completion=5, cache_read=read, cache_creation=created, cached_within=within)
    stage.script_replies([said, reply.model_copy(update={"tokens": tokens})])
    stage.run_workflow()
    assert [(event.prompt_tokens, event.context_tokens) for event in of(stage, ContextEvent)] == [(prompt, expected)]
    assert [event.prompt_tokens for event in of(stage, UsageEvent)] == [prompt]
    assert (stage.load_conversation().prompt_tokens_total, stage.load_conversation().context_tokens) == (
        prompt,
        expected,
    )
    assert [(row["prompt"], row.get("cachedWithin", False)) for row in stage.ledger_rows()] == [(prompt, within)]


def test_c094_two_rounds_two_requests_usage_summed_and_context_for_each(stage: Stage) -> None:
    expected = CASES["C094"]["expected"]
    stage.add_tools(make_server_tool("echo", lambda: {"v": 42}), make_patient_tool("paint", seconds=30))
    blocks = [ToolCallBlock(tool_call_id=f"t_{name}", tool_name=name, input={}) for name in ("echo", "paint")]
    said, _ = reply_with_text("all done")
    stage.start_turn()
    stage.script_replies(
        [
            ModelResponse(
                blocks=tuple(blocks), stop=FinishReason.TOOL_CALLS, tokens=TokenUsage(prompt=20, completion=15)
            )
        ],
        [said, ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=30, completion=5))],
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert len(stage.driver.requests) == expected["provider_requests"]
    results = [message.tool_call_id for message in stage.driver.requests[1].messages if message.role == "tool"]
    assert results == expected["request2_tool_result_ids_in_order"]
    assert [event.ok for event in of(stage, ToolResultEvent)] == expected["toolResult_ok"]
    (usage,) = of(stage, UsageEvent)
    assert usage.prompt_tokens == expected["usage"]["promptTokens"]
    assert usage.completion_tokens == expected["usage"]["completionTokens"]
    assert [event.prompt_tokens for event in of(stage, ContextEvent)] == expected["context_promptTokens"]


def test_c095_an_unknown_tool_is_an_error_the_model_reads(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("foo")), "Then not.")
    stage.run_workflow()
    (result,) = of(stage, ToolResultEvent)
    assert {"ok": result.ok, "error": result.error} == CASES["C095"]["expected"]["toolResult"]
    (block,) = stage.driver.requests[1].messages[-1].content
    assert isinstance(block, ToolResultBlock)
    assert block.error == "Unknown tool: foo"
    assert stage.event_types()[-1] == "done"


def test_c096_a_text_turn_on_the_wire(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert [event["type"] for event in told(stage)] == ["bridgeReady", *CASES["C096"]["expected"]]


def test_c097_a_turn_that_is_stopped_closes_its_calls_and_is_done(stage: Stage) -> None:
    """With `usage` before the end: what was used is never lost."""
    stage.start_turn(dialect="instatic")
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    stage.cancel_turn()
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
    stage.start_turn(dialect="instatic")
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    stage.cancel_turn()
    with pytest.raises(NotFound):
        stage.answer_request(OK)
    invariants.check_invariants(stage)


@pytest.mark.parametrize("case", ["C101", "C102"])
def test_c101_and_c102_a_snapshot_that_comes_with_a_result_is_there_before_anybody_goes_on(
    stage: Stage, case: str
) -> None:
    seen: list[Any] = []

    def look(_given: NoInput, context: ToolContext) -> object:
        seen.append(context.snapshot)
        return {}

    looking: Tool = make_server_tool("look", dict, idempotent=True)
    stage.add_tools(Tool(**{**vars(looking), "handler": look}))
    stage.start_turn(snapshot={"site": {"pages": []}})
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n"), tool_call_block("look")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK, snapshot=SNAPSHOT if case == "C101" else None)
    stage.run_workflow()
    assert seen == [SNAPSHOT if case == "C101" else {"site": {"pages": []}}]
