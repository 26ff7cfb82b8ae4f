"""Parametrize a test with many values, of which the quick suite (`make check`) tries some.

@pytest.mark.parametrize("number", sample_for_quick_suite(range(1, 31), every=7))
"""

from collections.abc import Iterable
from typing import Any

import pytest


def sample_for_quick_suite(values: Iterable[Any], *, every: int) -> list[Any]:
    """Return all values. All but the first of each `every` are marked exhaustive."""
    return [
        value if index % every == 0 else pytest.param(value, marks=pytest.mark.exhaustive)
        for index, value in enumerate(values)
    ]
