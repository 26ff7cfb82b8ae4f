"""What is not worth sending again."""

from dataclasses import replace

from fermata.conversations.history import freshened
from fermata.conversations.recipient import weight
from fermata.conversations.stale import elide_stale, squeeze, stub
from fermata.words.blocks import Block, ToolResultBlock
from fermata.words.messages import Message
from tests.unit.conversations.messages import ANTHROPIC, Thread, call, picture

HEAVY = replace(ANTHROPIC, is_heavy=lambda name: name == "read_document", is_forgotten=lambda name: name == "look_up")
READ = "read_document"


def reads(thread: Thread, *call_ids: str, **parts: object) -> None:
    """A round that reads, once for each id."""
    thread.model(*(call(call_id, READ) for call_id in call_ids))
    for call_id in call_ids:
        thread.result(call_id, READ, **({"data": {"html": f"<p>{call_id}</p>"}} | parts))


def kept(messages: list[Message]) -> dict[str, Block]:
    return {message.tool_call_id or "": message.content[0] for message in messages if message.role == "tool"}


def is_whole(block: Block) -> bool:
    return isinstance(block, ToolResultBlock) and block.data is not None and "elided" not in block.data


def test_of_a_heavy_tool_only_the_newest_rounds_results_stay() -> None:
    thread = Thread()
    thread.user("Go")
    for call_id in ("a", "b", "c"):
        reads(thread, call_id)
    found = kept(elide_stale(thread.messages, HEAVY))
    assert {name: is_whole(block) for name, block in found.items()} == {"a": False, "b": False, "c": True}
    assert found["a"] == stub(READ)


def test_two_results_of_the_newest_round_both_stay() -> None:
    thread = Thread()
    thread.user("Go")
    reads(thread, "a", "b")
    assert all(map(is_whole, kept(elide_stale(thread.messages, HEAVY)).values()))


def test_each_tool_has_its_own_newest() -> None:
    thread = Thread()
    thread.user("Go")
    reads(thread, "a")
    thread.model(call("b", "insertHtml"))
    thread.result("b", data={"nodeIds": ["n"]})
    assert all(map(is_whole, kept(elide_stale(thread.messages, HEAVY)).values()))


def test_a_turn_that_is_over_leaves_nothing_heavy_behind() -> None:
    thread = Thread()
    thread.user("Go")
    reads(thread, "a")
    thread.user("And now?")
    assert kept(elide_stale(thread.messages, HEAVY))["a"] == stub(READ)


def test_a_failure_is_never_left_out() -> None:
    thread = Thread()
    thread.user("Go")
    reads(thread, "a", ok=False, error="There is no such document.", data=None)
    thread.user("And now?")
    assert kept(elide_stale(thread.messages, HEAVY))["a"] == ToolResultBlock(
        ok=False, error="There is no such document."
    )


def test_a_result_with_pictures_is_heavy_whatever_its_tool() -> None:
    thread = Thread()
    thread.user("Go")
    for call_id in ("a", "b"):
        thread.model(call(call_id, "look"))
        thread.result(call_id, "look", images=(picture(),), data={})
    found = kept(elide_stale(thread.messages, ANTHROPIC))
    assert found["a"] == stub("look")
    assert is_whole(found["b"])


def test_what_a_tool_wants_forgotten_is_a_bare_success_in_later_turns() -> None:
    thread = Thread()
    thread.user("Go")
    thread.model(call("a", "look_up"))
    thread.result("a", "look_up", data={"phone": "555"})
    assert is_whole(kept(elide_stale(thread.messages, HEAVY))["a"])
    thread.user("And now?")
    assert kept(elide_stale(thread.messages, HEAVY))["a"] == ToolResultBlock(ok=True)


def test_a_turn_too_long_for_its_model_loses_its_oldest_results() -> None:
    thread = Thread()
    thread.user("Go")
    for number in range(10):
        thread.model(call(f"c{number}", "list"))
        thread.result(f"c{number}", "list", data="x" * 9_000)
    small = replace(ANTHROPIC, tokens=10_000)
    squeezed = squeeze(freshened(thread.messages, small), small)
    assert weight(squeezed) <= 10_000
    whole = [is_whole(block) for block in kept(squeezed).values()]
    assert whole == sorted(whole)
    assert whole.count(True) == 3
