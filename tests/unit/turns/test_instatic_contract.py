"""Cases of Instatic's tool contract that concern a turn, each by its number (docs/instatic.md)."""

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


def rendered_events(stage: Stage) -> list[dict[str, Any]]:
    """Return the turn's events as an Instatic browser receives them."""
    written = b"".join(render_event(number, event, "instatic") for number, event in enumerate(stage.events(), 1))
    return [json.loads(line) for line in written.splitlines()]


def events_of_type(stage: Stage, kind: type[Any]) -> list[Any]:
    events: list[Event] = [event for event in stage.events() if isinstance(event, kind)]
    return events


@pytest.mark.parametrize("case", ["C043", "C044", "C045"])
def test_c043_to_c045_context_size_of_each_kind_of_token_report(stage: Stage, case: str) -> None:
    case_input = CASES[case]["input"]
    expected = CASES[case]["expected"]
    cache_read = case_input["cacheReadTokens"]
    cache_created = case_input.get("cacheCreationTokens", 0)
    is_cached_within = case_input["provider"] != "anthropic"
    prompt = case_input["promptTokens"]
    stage.start_turn()
    text_delta, reply = reply_with_text("Hello.")
    tokens = TokenUsage(
        prompt=prompt, completion=5, cache_read=cache_read, cache_creation=cache_created, cached_within=is_cached_within
    )
    stage.script_replies([text_delta, reply.model_copy(update={"tokens": tokens})])
    stage.run_workflow()
    assert [(event.prompt_tokens, event.context_tokens) for event in events_of_type(stage, ContextEvent)] == [
        (prompt, expected)
    ]
    assert [event.prompt_tokens for event in events_of_type(stage, UsageEvent)] == [prompt]
    assert (stage.load_conversation().prompt_tokens_total, stage.load_conversation().context_tokens) == (
        prompt,
        expected,
    )
    assert [(row["prompt"], row.get("cachedWithin", False)) for row in stage.ledger_rows()] == [
        (prompt, is_cached_within)
    ]


def test_c094_two_rounds_add_up_usage_and_report_each_context(stage: Stage) -> None:
    expected = CASES["C094"]["expected"]
    stage.add_tools(make_server_tool("echo", lambda: {"v": 42}), make_patient_tool("paint", seconds=30))
    blocks = [ToolCallBlock(tool_call_id=f"t_{name}", tool_name=name, input={}) for name in ("echo", "paint")]
    text_delta, _ = reply_with_text("all done")
    stage.start_turn()
    stage.script_replies(
        [
            ModelResponse(
                blocks=tuple(blocks), stop=FinishReason.TOOL_CALLS, tokens=TokenUsage(prompt=20, completion=15)
            )
        ],
        [text_delta, ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=30, completion=5))],
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert len(stage.driver.requests) == expected["provider_requests"]
    results = [message.tool_call_id for message in stage.driver.requests[1].messages if message.role == "tool"]
    assert results == expected["request2_tool_result_ids_in_order"]
    assert [event.ok for event in events_of_type(stage, ToolResultEvent)] == expected["toolResult_ok"]
    (usage,) = events_of_type(stage, UsageEvent)
    assert usage.prompt_tokens == expected["usage"]["promptTokens"]
    assert usage.completion_tokens == expected["usage"]["completionTokens"]
    assert [event.prompt_tokens for event in events_of_type(stage, ContextEvent)] == expected["context_promptTokens"]


def test_c095_an_unknown_tool_is_reported_to_the_model(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("foo")), "Then not.")
    stage.run_workflow()
    (result,) = events_of_type(stage, ToolResultEvent)
    assert {"ok": result.ok, "error": result.error} == CASES["C095"]["expected"]["toolResult"]
    (block,) = stage.driver.requests[1].messages[-1].content
    assert isinstance(block, ToolResultBlock)
    assert block.error == "Unknown tool: foo"
    assert stage.event_types()[-1] == "done"


def test_c096_events_of_a_text_turn(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert [event["type"] for event in rendered_events(stage)] == ["bridgeReady", *CASES["C096"]["expected"]]


def test_c097_a_cancelled_turn_closes_its_calls_and_ends_with_done(stage: Stage) -> None:
    """`usage` comes before the end, so that the used tokens are always reported."""
    stage.start_turn(dialect="instatic")
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    stage.cancel_turn()
    events = rendered_events(stage)
    assert [event["type"] for event in events if event["type"] in ("toolCall", "toolResult", "done")] == [
        "toolCall",
        "toolResult",
        "done",
    ]
    (result,) = [event for event in events if event["type"] == "toolResult"]
    assert not result["ok"]
    assert result["error"]
    assert events[-2]["type"] == "usage"


def test_c099_a_result_after_the_cancel_is_not_found(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    stage.cancel_turn()
    with pytest.raises(NotFound):
        stage.answer_request(OK)
    invariants.check_invariants(stage)


@pytest.mark.parametrize("case", ["C101", "C102"])
def test_c101_and_c102_a_results_snapshot_is_stored_before_the_turn_continues(stage: Stage, case: str) -> None:
    tool_snapshots: list[Any] = []

    def look(_given: NoInput, context: ToolContext) -> object:
        tool_snapshots.append(context.snapshot)
        return {}

    looking: Tool = make_server_tool("look", dict, idempotent=True)
    stage.add_tools(Tool(**{**vars(looking), "handler": look}))
    stage.start_turn(snapshot={"site": {"pages": []}})
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n"), tool_call_block("look")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK, snapshot=SNAPSHOT if case == "C101" else None)
    stage.run_workflow()
    assert tool_snapshots == [SNAPSHOT if case == "C101" else {"site": {"pages": []}}]
