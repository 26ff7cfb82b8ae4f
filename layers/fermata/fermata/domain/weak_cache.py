"""Work that is done once for each object: a history grows at its end, and most of it was looked at a round ago."""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")


class WeakCache(Generic[Answer]):
    """A function whose answers are kept for as long as the object they are about; objects are told by identity.

    The object must never change, and the answer must not hold it.
    """

    def __init__(self, function: Callable[[Any], Answer]) -> None:
        self._function = function
        self._known: dict[int, tuple[weakref.ref[Any], Answer]] = {}

    def __call__(self, thing: Any) -> Answer:
        key = id(thing)
        known = self._known.get(key)
        if known is None:
            known = weakref.ref(thing, lambda _: self._known.pop(key, None)), self._function(thing)
            self._known[key] = known
        return known[1]
