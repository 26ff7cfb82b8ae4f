"""What tools are called: one way for the whole of a request, whatever they were called before."""

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.model_io import ModelRequest
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


def names_in(ask: ModelRequest) -> tuple[list[str], list[str]]:
    """Of the calls and of the results in the history a model was sent."""
    called = [block.tool_name for one in ask.messages for block in one.content if isinstance(block, ToolCallBlock)]
    return called, [one.tool_name or "" for one in ask.messages if one.role == "tool"]


def use_a_tool(stage: Stage, name: str, names: str) -> None:
    stage.start_turn("Look", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name)), "Done.")
    assert stage.run_workflow() == "finished"


@pytest.mark.parametrize(
    ("names", "expected"), [("seed", "list_modules"), ("prefixed", "site_list_modules")], ids=["seed", "prefixed"]
)
def test_a_history_with_both_names_is_sent_with_those_of_the_turn(stage: Stage, names: str, expected: str) -> None:
    use_a_tool(stage, "list_modules", "seed")
    use_a_tool(stage, "site_list_modules", "prefixed")
    stage.start_turn("Again", tool_names=names)
    stage.script_replies("Done.")
    stage.run_workflow()
    ask = stage.driver.requests[-1]
    assert names_in(ask) == ([expected] * 2, [expected] * 2)
    assert expected in [spec.name for spec in ask.tools]


def test_a_name_that_is_no_tools_is_left_as_it_is(stage: Stage) -> None:
    use_a_tool(stage, "paint_the_door", "prefixed")
    assert names_in(stage.driver.requests[-1])[0] == ["paint_the_door"]
