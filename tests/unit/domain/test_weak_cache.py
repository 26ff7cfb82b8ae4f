"""Cache results per object, for as long as the object exists."""

import gc

from fermata.domain.blocks import TextBlock
from fermata.domain.weak_cache import WeakCache


def make_length_cache(processed: list[str]) -> WeakCache[int]:
    def length(block: TextBlock) -> int:
        processed.append(block.text)
        return len(block.text)

    return WeakCache(length)


def test_the_same_object_is_processed_once() -> None:
    processed: list[str] = []
    length = make_length_cache(processed)
    block = TextBlock(text="hello")
    assert (length(block), length(block)) == (5, 5)
    assert processed == ["hello"]


def test_an_equal_object_is_processed_separately() -> None:
    processed: list[str] = []
    length = make_length_cache(processed)
    one, other = TextBlock(text="hello"), TextBlock(text="hello")
    assert length(one) == length(other) == 5
    assert processed == ["hello", "hello"]


def test_results_of_freed_objects_are_dropped() -> None:
    length = WeakCache(lambda block: len(block.text))
    for text in ("a", "ab", "abc"):
        block = TextBlock(text=text)
        assert length(block) == len(text)
        del block
    gc.collect()
    assert not length._results
