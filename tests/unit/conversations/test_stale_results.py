"""Elision of stale tool results."""

from dataclasses import replace

from fermata.conversations.history.stale_results import elide_stale_results, make_elided_result
from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import ANTHROPIC_PROFILE, ThreadBuilder, make_call, make_image

HEAVY_PROFILE = replace(
    ANTHROPIC_PROFILE,
    is_heavy_tool=lambda name: name == "read_document",
    is_forgotten_tool=lambda name: name == "look_up",
)
READ_TOOL = "read_document"


def add_read_round(thread: ThreadBuilder, *call_ids: str, **fields: object) -> None:
    """Add a round that calls the read tool once for each id."""
    thread.add_reply(*(make_call(call_id, READ_TOOL) for call_id in call_ids))
    for call_id in call_ids:
        thread.add_result(call_id, READ_TOOL, **({"data": {"html": f"<p>{call_id}</p>"}} | fields))


def results_by_call(messages: list[Message]) -> dict[str, Block]:
    return {message.tool_call_id or "": message.content[0] for message in messages if message.role == "tool"}


def has_data(block: Block) -> bool:
    return isinstance(block, ToolResultBlock) and block.data is not None and "elided" not in block.data


def test_of_a_heavy_tool_only_the_results_of_the_newest_round_stay() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for call_id in ("a", "b", "c"):
        add_read_round(thread, call_id)
    results = results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))
    assert {name: has_data(block) for name, block in results.items()} == {"a": False, "b": False, "c": True}
    assert results["a"] == make_elided_result(READ_TOOL)


def test_two_results_of_the_newest_round_both_stay() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a", "b")
    assert all(map(has_data, results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE)).values()))


def test_each_tool_has_its_own_newest_round() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a")
    thread.add_reply(make_call("b", "insertHtml"))
    thread.add_result("b", data={"nodeIds": ["n"]})
    assert all(map(has_data, results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE)).values()))


def test_heavy_results_of_earlier_turns_are_elided() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a")
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == make_elided_result(READ_TOOL)


def test_a_failure_is_never_elided() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a", ok=False, error="There is no such document.", data=None)
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == ToolResultBlock(
        ok=False, error="There is no such document."
    )


def test_a_result_with_images_of_any_tool_is_heavy() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for call_id in ("a", "b"):
        thread.add_reply(make_call(call_id, "look"))
        thread.add_result(call_id, "look", images=(make_image(),), data={})
    results = results_by_call(elide_stale_results(thread.messages, ANTHROPIC_PROFILE))
    assert results["a"] == make_elided_result("look")
    assert has_data(results["b"])


def test_a_forgotten_result_is_a_success_without_data_in_later_turns() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look_up"))
    thread.add_result("a", "look_up", data={"phone": "555"})
    assert has_data(results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"])
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == ToolResultBlock(ok=True)


def test_a_part_of_a_page_is_no_version_of_another_part() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for part in (None, 2, 3):
        thread.add_reply(make_call(f"p{part}", READ_TOOL, document={"id": "index"}, part=part))
        thread.add_result(f"p{part}", READ_TOOL, data={"html": f"<p>{part}</p>"})
    assert all(map(has_data, results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE)).values()))
    thread.add_reply(make_call("again", READ_TOOL, document={"id": "index"}))
    thread.add_result("again", READ_TOOL, data={"html": "<p>changed</p>"})
    results = results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))
    assert {name: has_data(block) for name, block in results.items()} == {
        "pNone": False,
        "p2": True,
        "p3": True,
        "again": True,
    }
