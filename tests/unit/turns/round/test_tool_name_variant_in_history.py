"""Tool names in a request: the same variant throughout, whatever earlier turns used (decision 0069)."""

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.model_io import ModelRequest
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


def called_names(request: ModelRequest) -> tuple[list[str], list[str]]:
    """Return the tool names of calls and of results in a model request."""
    called = [
        block.tool_name for message in request.messages for block in message.content if isinstance(block, ToolCallBlock)
    ]
    return called, [message.tool_name or "" for message in request.messages if message.role == "tool"]


def run_turn_with_call(stage: Stage, name: str, names: str) -> None:
    stage.start_turn("Look", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name)), "Done.")
    assert stage.run_workflow() == "finished"


@pytest.mark.parametrize(
    ("names", "expected"), [("seed", "list_modules"), ("prefixed", "site_list_modules")], ids=["seed", "prefixed"]
)
def test_the_history_is_sent_with_the_tool_names_of_the_turn(stage: Stage, names: str, expected: str) -> None:
    run_turn_with_call(stage, "list_modules", "seed")
    run_turn_with_call(stage, "site_list_modules", "prefixed")
    stage.start_turn("Again", tool_names=names)
    stage.script_replies("Done.")
    stage.run_workflow()
    request = stage.driver.requests[-1]
    assert called_names(request) == ([expected] * 2, [expected] * 2)
    assert expected in [spec.name for spec in request.tools]


def test_an_unknown_tool_name_is_left_unchanged(stage: Stage) -> None:
    run_turn_with_call(stage, "paint_the_door", "prefixed")
    assert called_names(stage.driver.requests[-1])[0] == ["paint_the_door"]
