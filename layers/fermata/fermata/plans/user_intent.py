"""Find in a user's words what a model's plan leaves open: whether a page, a block or an item is meant, and which.

Words are compared one by one, so that the time grows with the message only.
"""

import re
from collections.abc import Container, Iterator, Sequence

REMOVE_WORDS = frozenset({"remove", "delete", "drop"})
ADD_WORDS = frozenset({"add", "append", "insert", "include"})
NEW_PAGE_WORDS = frozenset({"create", "add", "make", "build", "new"})
PAGE_WORDS = frozenset({"page"})
BLOCK_WORDS = frozenset({"block", "section", "component"})
ORDINALS = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "sixth": 5,
    "seventh": 6,
    "eighth": 7,
    "ninth": 8,
    "tenth": 9,
}
LAST = -1
"""The index of the last item, whatever their number is."""
MAX_WORDS_BETWEEN = 10

_PLAN_VERBS = frozenset({"plan", "outline", "propose"})
_FIRST_WORDS = frozenset({"first", "before"})
_ONLY_WORDS = frozenset({"only", "just"})
_WORD = re.compile(r"[\w/#'-]++|[.!?\n]")
_SENTENCE_ENDS = frozenset(".!?\n")
_NUMBER = re.compile(r"#?(\d{1,3})(?:st|nd|rd|th)?")


def split_words(message: str) -> list[str]:
    """Return the words of a message in lower case, and the marks that end its sentences."""
    return _WORD.findall(message.lower())


def iter_pairs(words: Sequence[str], first: Container[str], second: Container[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of a word of `second` that follows one of `first` in the same sentence, and of the latter."""
    place: int | None = None
    for index, word in enumerate(words):
        if word in _SENTENCE_ENDS:
            place = None
        elif word in second and place is not None and index - place <= MAX_WORDS_BETWEEN:
            yield place, index
        elif word in first:
            place = index


def has_pair(words: Sequence[str], first: Container[str], second: Container[str]) -> bool:
    """Return whether a word of `second` follows one of `first` in the same sentence."""
    return next(iter_pairs(words, first, second), None) is not None


def asks_to_delete_page(words: Sequence[str]) -> bool:
    """Return whether the words ask to delete a page."""
    return has_pair(words, REMOVE_WORDS, PAGE_WORDS)


def asks_for_new_page(words: Sequence[str]) -> bool:
    """Return whether the words ask to create a page."""
    return has_pair(words, NEW_PAGE_WORDS, PAGE_WORDS)


def asks_for_new_item(words: Sequence[str], item_words: Container[str]) -> bool:
    """Return whether the words ask to add an item, and no block that is named after its items."""
    pairs = iter_pairs(words, ADD_WORDS, item_words)
    return any(not (index + 1 < len(words) and words[index + 1] in BLOCK_WORDS) for _, index in pairs)


def find_removed_item(words: Sequence[str], item_words: Container[str]) -> int | None:
    """Return the index of the item that the words ask to remove (`LAST` for the last one); None if there is none.

    `the second question`, `the last customer review` and `card 3` name items.
    """
    for verb, place in iter_pairs(words, REMOVE_WORDS, item_words):
        before = words[max(verb + 1, place - 2) : place]
        behind = [word for word in words[place + 1 : place + 3] if word != "number"][:1]
        for word in (*reversed(before), *behind):
            if (index := _read_ordinal(word)) is not None:
                return index
    return None


def _read_ordinal(word: str) -> int | None:
    if word == "last":
        return LAST
    number = _NUMBER.fullmatch(word)
    if number is not None:
        return int(number[1]) - 1 if number[1] != "0" else None
    return ORDINALS.get(word)


def asks_to_plan_first(message: str) -> bool:
    """Return whether a message asks to see the plan before anything changes: `plan first`, `only propose a plan`."""
    words = split_words(message)
    return has_pair(words, _PLAN_VERBS, _FIRST_WORDS) or has_pair(words, _ONLY_WORDS, _PLAN_VERBS)
