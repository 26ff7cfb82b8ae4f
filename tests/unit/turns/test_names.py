"""What tools are called: one way for the whole of a request, whatever they were called before."""

import pytest

from fermata.words.blocks import ToolCallBlock
from fermata.words.model import Ask
from tests.unit.turns.stage import Stage, call, calls


def names_in(ask: Ask) -> tuple[list[str], list[str]]:
    """Of the calls and of the results in the history a model was sent."""
    called = [block.tool_name for one in ask.messages for block in one.content if isinstance(block, ToolCallBlock)]
    return called, [one.tool_name or "" for one in ask.messages if one.role == "tool"]


def use_a_tool(stage: Stage, name: str, names: str) -> None:
    stage.start("Look", tool_names=names)
    stage.says(calls(call(name)), "Done.")
    assert stage.run() == "finished"


@pytest.mark.parametrize(
    ("names", "expected"), [("seed", "list_modules"), ("prefixed", "site_list_modules")], ids=["seed", "prefixed"]
)
def test_a_history_with_both_names_is_sent_with_those_of_the_turn(stage: Stage, names: str, expected: str) -> None:
    use_a_tool(stage, "list_modules", "seed")
    use_a_tool(stage, "site_list_modules", "prefixed")
    stage.start("Again", tool_names=names)
    stage.says("Done.")
    stage.run()
    ask = stage.driver.asks[-1]
    assert names_in(ask) == ([expected] * 2, [expected] * 2)
    assert expected in [spec.name for spec in ask.tools]


def test_a_name_that_is_no_tools_is_left_as_it_is(stage: Stage) -> None:
    use_a_tool(stage, "paint_the_door", "prefixed")
    assert names_in(stage.driver.asks[-1])[0] == ["paint_the_door"]
