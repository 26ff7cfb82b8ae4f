"""Turn texts into vectors by the letters that they have in common, without a model (decision 0461).

Texts that share words, stems of words or parts of them are near to each other. Synonyms are not.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from fermata.domain.plain_letters import remove_marks

LEXICAL_MODEL = "lexical-256"
LEXICAL_DIMENSIONS = 256
_GRAM_CHARS = 3
_WORD_WEIGHT = 2.0

Vector = list[float]


def embed_lexically(texts: Sequence[str]) -> list[Vector]:
    """Return a vector of length 1 for each text; of one without letters and digits, a vector of zeros."""
    return [_embed(text) for text in texts]


def normalize_words(text: str) -> list[str]:
    """Return the words of a text: letters without accents, and digits, in lower case."""
    kept = (char if char.isalnum() else " " for char in remove_marks(text.casefold()))
    return "".join(kept).split()


def list_trigrams(words: Sequence[str]) -> Iterator[str]:
    """Iterate over all parts of three characters; a word has a space before it and behind it."""
    for word in words:
        padded = f" {word} "
        for start in range(len(padded) - _GRAM_CHARS + 1):
            yield padded[start : start + _GRAM_CHARS]


def _embed(text: str) -> Vector:
    words = normalize_words(text)
    vector = [0.0] * LEXICAL_DIMENSIONS
    for grams, weight in ((Counter(list_trigrams(words)), 1.0), (Counter(words), _WORD_WEIGHT)):
        for gram, count in grams.items():
            place, sign = _place_gram(gram)
            vector[place] += sign * weight * (1.0 + math.log(count))
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


@lru_cache(maxsize=65536)
def _place_gram(gram: str) -> tuple[int, float]:
    """Return the dimension of a part of a word, and its sign, so that parts that meet cancel each other on average."""
    digest = hashlib.blake2b(gram.encode(), digest_size=4).digest()
    return int.from_bytes(digest[:2], "big") % LEXICAL_DIMENSIONS, 1.0 if digest[2] & 1 else -1.0
