"""Names for calls whose provider gave them none, or gave several the same."""

from fermata.drivers.calling import named_apart
from fermata.words.blocks import TextBlock, ToolCallBlock
from tests.unit.drivers.asks import call


def names(*ids: str, request: bytes = b"request") -> list[str]:
    blocks = named_apart([TextBlock(text="Hm."), *map(call, ids)], request)
    assert blocks[0] == TextBlock(text="Hm.")
    return [block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)]


def test_ids_that_are_their_own_stay() -> None:
    assert names("a", "b") == ["a", "b"]


def test_ids_that_are_there_twice_are_told_apart() -> None:
    assert names("a", "a", "a") == ["a", "a_2", "a_3"]


def test_an_id_made_up_never_meets_one_that_was_given() -> None:
    assert len(set(names("a", "a_2", "a", "a"))) == 4


def test_an_id_made_of_a_request_is_the_same_again_and_no_other_requests() -> None:
    first, second = names("", "")
    assert first != second
    assert names("", "") == [first, second]
    assert not set(names("", "", request=b"another")) & {first, second}
