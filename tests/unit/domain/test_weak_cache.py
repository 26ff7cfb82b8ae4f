"""An answer is kept for one object, for as long as that object lives."""

import gc

from fermata.domain.blocks import TextBlock
from fermata.domain.weak_cache import WeakCache


def noting(looked: list[str]) -> WeakCache[int]:
    def length(block: TextBlock) -> int:
        looked.append(block.text)
        return len(block.text)

    return WeakCache(length)


def test_the_same_object_is_looked_at_once() -> None:
    looked: list[str] = []
    length = noting(looked)
    block = TextBlock(text="hello")
    assert (length(block), length(block)) == (5, 5)
    assert looked == ["hello"]


def test_an_equal_object_is_looked_at_for_itself() -> None:
    looked: list[str] = []
    length = noting(looked)
    one, other = TextBlock(text="hello"), TextBlock(text="hello")
    assert length(one) == length(other) == 5
    assert looked == ["hello", "hello"]


def test_what_is_gone_is_forgotten() -> None:
    length = WeakCache(lambda block: len(block.text))
    for text in ("a", "ab", "abc"):
        block = TextBlock(text=text)
        assert length(block) == len(text)
        del block
    gc.collect()
    assert not length._known
