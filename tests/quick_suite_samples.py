"""Parametrize a test with many values, of which the quick suite (`make check`) tries some.

@pytest.mark.parametrize("number", sample_for_quick_suite(range(1, 31), every=7))
@settings(max_examples=count_examples(150))
"""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

ALL_EXAMPLES = 100
"""What hypothesis generates for a test that sets no number, in `make test`."""


def sample_for_quick_suite(values: Iterable[Any], *, every: int) -> list[Any]:
    """Return all values. All but the first of each `every` are marked exhaustive. A tuple has several arguments."""
    return [
        value if index % every == 0 else pytest.param(*_get_arguments(value), marks=pytest.mark.exhaustive)
        for index, value in enumerate(values)
    ]


def _get_arguments(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def is_quick_suite() -> bool:
    """Return whether `make check` runs, which generates fewer examples (tests/conftest.py)."""
    return settings().max_examples < ALL_EXAMPLES


def count_examples(number: int) -> int:
    """Return how many examples a test generates: all in `make test`, a fifth of them in the quick suite."""
    return max(1, number * settings().max_examples // ALL_EXAMPLES)
