"""Cache a function's results per object for as long as the object exists.

A history grows at its end, so most of its messages were processed a round ago.
"""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class WeakCache(Generic[Result]):
    """A function of one object whose results are cached by the object's identity.

    The object must be immutable, and the result must not refer to it, or it would never be freed.
    """

    def __init__(self, function: Callable[[Any], Result]) -> None:
        self._function = function
        self._results: dict[int, tuple[weakref.ref[Any], Result]] = {}

    def __call__(self, subject: Any) -> Result:
        key = id(subject)
        entry = self._results.get(key)
        if entry is None:
            entry = weakref.ref(subject, lambda _: self._results.pop(key, None)), self._function(subject)
            self._results[key] = entry
        return entry[1]
