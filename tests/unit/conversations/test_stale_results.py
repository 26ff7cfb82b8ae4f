"""What is not worth sending again."""

from dataclasses import replace

from fermata.conversations.history.compiler import prepare_history
from fermata.conversations.history.stale_results import elide_oldest_results, elide_stale_results, make_elided_result
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import ANTHROPIC_PROFILE, ThreadBuilder, make_call, make_image

HEAVY_PROFILE = replace(
    ANTHROPIC_PROFILE,
    is_heavy_tool=lambda name: name == "read_document",
    is_forgotten_tool=lambda name: name == "look_up",
)
READ_TOOL = "read_document"


def add_read_round(thread: ThreadBuilder, *call_ids: str, **parts: object) -> None:
    """A round that reads, once for each id."""
    thread.add_reply(*(make_call(call_id, READ_TOOL) for call_id in call_ids))
    for call_id in call_ids:
        thread.add_result(call_id, READ_TOOL, **({"data": {"html": f"<p>{call_id}</p>"}} | parts))


def results_by_call(messages: list[Message]) -> dict[str, Block]:
    return {message.tool_call_id or "": message.content[0] for message in messages if message.role == "tool"}


def has_data(block: Block) -> bool:
    return isinstance(block, ToolResultBlock) and block.data is not None and "elided" not in block.data


def test_of_a_heavy_tool_only_the_newest_rounds_results_stay() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for call_id in ("a", "b", "c"):
        add_read_round(thread, call_id)
    found = results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))
    assert {name: has_data(block) for name, block in found.items()} == {"a": False, "b": False, "c": True}
    assert found["a"] == make_elided_result(READ_TOOL)


def test_two_results_of_the_newest_round_both_stay() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a", "b")
    assert all(map(has_data, results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE)).values()))


def test_each_tool_has_its_own_newest() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a")
    thread.add_reply(make_call("b", "insertHtml"))
    thread.add_result("b", data={"nodeIds": ["n"]})
    assert all(map(has_data, results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE)).values()))


def test_a_turn_that_is_over_leaves_nothing_heavy_behind() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a")
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == make_elided_result(READ_TOOL)


def test_a_failure_is_never_left_out() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read_round(thread, "a", ok=False, error="There is no such document.", data=None)
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == ToolResultBlock(
        ok=False, error="There is no such document."
    )


def test_a_result_with_pictures_is_heavy_whatever_its_tool() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for call_id in ("a", "b"):
        thread.add_reply(make_call(call_id, "look"))
        thread.add_result(call_id, "look", images=(make_image(),), data={})
    found = results_by_call(elide_stale_results(thread.messages, ANTHROPIC_PROFILE))
    assert found["a"] == make_elided_result("look")
    assert has_data(found["b"])


def test_what_a_tool_wants_forgotten_is_a_bare_success_in_later_turns() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look_up"))
    thread.add_result("a", "look_up", data={"phone": "555"})
    assert has_data(results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"])
    thread.add_prompt("And now?")
    assert results_by_call(elide_stale_results(thread.messages, HEAVY_PROFILE))["a"] == ToolResultBlock(ok=True)


def test_a_turn_too_long_for_its_model_loses_its_oldest_results() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for number in range(10):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data="x" * 9_000)
    small = replace(ANTHROPIC_PROFILE, max_history_tokens=10_000)
    squeezed = elide_oldest_results(prepare_history(thread.messages, small), small)
    assert estimate_tokens(squeezed) <= 10_000
    whole = [has_data(block) for block in results_by_call(squeezed).values()]
    assert whole == sorted(whole)
    assert whole.count(True) == 3
