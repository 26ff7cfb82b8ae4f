"""Names for calls whose provider gave them none, or gave several the same."""

from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids
from tests.unit.drivers.conversation_builders import tool_call


def assigned_ids(*ids: str, request: bytes = b"request") -> list[str]:
    blocks = assign_unique_call_ids([TextBlock(text="Hm."), *map(tool_call, ids)], request)
    assert blocks[0] == TextBlock(text="Hm.")
    return [block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)]


def test_ids_that_are_their_own_stay() -> None:
    assert assigned_ids("a", "b") == ["a", "b"]


def test_ids_that_are_there_twice_are_told_apart() -> None:
    assert assigned_ids("a", "a", "a") == ["a", "a_2", "a_3"]


def test_an_id_made_up_never_meets_one_that_was_given() -> None:
    assert len(set(assigned_ids("a", "a_2", "a", "a"))) == 4


def test_an_id_made_of_a_request_is_the_same_again_and_no_other_requests() -> None:
    first, second = assigned_ids("", "")
    assert first != second
    assert assigned_ids("", "") == [first, second]
    assert not set(assigned_ids("", "", request=b"another")) & {first, second}
