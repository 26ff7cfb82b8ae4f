"""Rank tools by how well their names and descriptions match a text."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from fermata.tools.tool import Tool

_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+")
_SPELLED_NAMES = re.compile(r"[^\s,;:\"'`()\[\]{}<>!?]+")
_NAME_WEIGHT = 3
_SPELLED_OUT_SCORE = 1_000_000.0
"""More than any words can add up to: a tool that the text names comes before those that it describes."""
_MIN_WORD_CHARS = 2
_MAX_QUERY_WORDS = 400


def rank_tools(tools: Sequence[Tool], text: str) -> list[Tool]:
    """Return the tools, the best match first. Of equal matches the one that was defined first comes first.

    Args:
        tools: The tools to choose from.
        text: What is looked for, such as a prompt. A tool whose whole name it spells is a better match than any other.
    """
    scores = _score_tools(tools, text)
    return [tools[index] for index in _order_by_score(scores)]


def find_matching_tools(tools: Sequence[Tool], text: str) -> list[Tool]:
    """Return the tools that share a word with the text, the best match first."""
    scores = _score_tools(tools, text)
    return [tools[index] for index in _order_by_score(scores) if scores[index]]


def _order_by_score(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda index: -scores[index])


def _score_tools(tools: Sequence[Tool], text: str) -> list[float]:
    words = set(list_search_words(text)[:_MAX_QUERY_WORDS])
    known = [(_read_words(tool.name), _read_words(tool.description)) for tool in tools]
    counts = Counter(word for name, description in known for word in {*name, *description})
    weights = {word: math.log(1 + len(tools) / counts[word]) for word in words if counts[word]}
    spelled = {_fold_name(name) for name in _SPELLED_NAMES.findall(text)}
    return [
        sum(weight * (_NAME_WEIGHT * (word in name) + (word in description)) for word, weight in weights.items())
        + _SPELLED_OUT_SCORE * (not spelled.isdisjoint(_read_names(tool)))
        for tool, (name, description) in zip(tools, known, strict=True)
    ]


def _read_names(tool: Tool) -> frozenset[str]:
    return frozenset(_fold_name(name) for name in (tool.name, *tool.aliases))


def _fold_name(name: str) -> str:
    """Return a name without what separates its words: `pim.getProduct` and `pim_getProduct` are one."""
    return "".join(char for char in name.lower() if char.isalnum())


@cache
def _read_words(text: str) -> frozenset[str]:
    return frozenset(list_search_words(text))


def list_search_words(text: str) -> list[str]:
    """Return the words of a text or a name, in small letters and without a plural's ending. A digit is a word."""
    words = (word.lower() for word in _WORDS.findall(text))
    return [_to_singular(word) for word in words if len(word) >= _MIN_WORD_CHARS or word.isdigit()]


def _to_singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
