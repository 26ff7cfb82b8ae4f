"""Ids for calls whose provider gave none, or gave several the same."""

from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids
from tests.unit.drivers.conversation_builders import tool_call


def assigned_ids(*ids: str, request: bytes = b"request") -> list[str]:
    blocks = assign_unique_call_ids([TextBlock(text="Hm."), *map(tool_call, ids)], request)
    assert blocks[0] == TextBlock(text="Hm.")
    return [block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)]


def test_unique_ids_are_kept() -> None:
    assert assigned_ids("a", "b") == ["a", "b"]


def test_repeated_ids_become_unique() -> None:
    assert assigned_ids("a", "a", "a") == ["a", "a_2", "a_3"]


def test_a_derived_id_never_equals_a_given_one() -> None:
    assert len(set(assigned_ids("a", "a_2", "a", "a"))) == 4


def test_a_derived_id_is_stable_and_differs_between_requests() -> None:
    first, second = assigned_ids("", "")
    assert first != second
    assert assigned_ids("", "") == [first, second]
    assert not set(assigned_ids("", "", request=b"another")) & {first, second}
