"""Keep vectors small: one byte for each number, and a signature by which near ones are found (decision 0461)."""

import base64
import math
import random
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

MAX_DIMENSIONS = 4096
_SIGNS_SEED = 460
_LARGEST_BYTE = 127


class PackedVector(NamedTuple):
    """A vector: its direction in whole numbers from -127 to 127, and its signature."""

    numbers: list[int]
    signature: int

    def to_text(self) -> str:
        """Return the numbers as a text of four characters for three numbers."""
        return base64.b64encode(bytes(number & 0xFF for number in self.numbers)).decode()


def pack_vector(vector: Sequence[float]) -> PackedVector | None:
    """Pack a vector; None for one that has no direction or has too many dimensions."""
    largest = max(map(abs, vector), default=0.0)
    if not 0 < largest < math.inf or len(vector) > MAX_DIMENSIONS:
        return None
    numbers = [round(value / largest * _LARGEST_BYTE) for value in vector]
    return PackedVector(numbers, _sign(vector))


def unpack_numbers(text: str) -> list[int]:
    """Return the numbers of `PackedVector.to_text`."""
    return memoryview(base64.b64decode(text)).cast("b").tolist()


def compare_directions(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the cosine of the angle between two vectors, from 0 to 1; what is opposite counts as unrelated."""
    if len(first) != len(second):
        return 0.0
    lengths = math.sqrt(sum(map(mul, first, first)) * sum(map(mul, second, second)))
    return min(1.0, max(0.0, sum(map(mul, first, second)) / lengths)) if lengths else 0.0


def _sign(vector: Sequence[float]) -> int:
    """Return a bit for each number after a fixed rotation. The share of equal bits falls with the angle.

    Without the rotation, the many zeros of a short text would have no sign.
    """
    size = 1 << max(8, (len(vector) - 1).bit_length())
    values = [value * sign for value, sign in zip(vector, _list_signs(size), strict=False)]
    values += [0.0] * (size - len(values))
    span = 1
    while span < size:  # the fast Walsh-Hadamard transform
        for start in range(0, size, span * 2):
            for place in range(start, start + span):
                left, right = values[place], values[place + span]
                values[place], values[place + span] = left + right, left - right
        span *= 2
    return sum(1 << place for place, value in enumerate(values) if value > 0)


@lru_cache(maxsize=8)
def _list_signs(size: int) -> list[float]:
    chosen = random.Random(_SIGNS_SEED)  # noqa: S311 (a rotation, not a secret)
    return [1.0 if chosen.random() < 0.5 else -1.0 for _ in range(size)]
