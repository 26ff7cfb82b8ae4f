"""Define dataclasses of immutable values, which are built in a third of the time (decision 0607).

    from fermata.domain.value_dataclass import value_dataclass

    @value_dataclass(frozen=True)
    class Point:
        x: int
        y: int

To type checkers it is `dataclasses.dataclass`, with all its checks: an assignment to a field is an error there. When a
program runs, the class does not refuse it, because the methods that would are compiled for each class.
"""

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["value_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as value_dataclass
else:

    def value_dataclass(*, frozen, kw_only=False):
        """Return a decorator that makes a dataclass whose instances are compared, hashed and shown by their fields.

        Args:
            frozen: Has to be true: without it, a type checker would allow assignments.
            kw_only: Whether fields are given by their names only.

        Raises:
            TypeError: The class is not frozen.
        """
        if not frozen:
            raise TypeError("A value is frozen. Use dataclasses.dataclass for what changes.")

        def decorate(cls):
            own = vars(cls)
            cls = dataclasses.dataclass(cls, kw_only=kw_only, eq=False, repr=False)
            for method in (__eq__, __hash__, __repr__):
                if method.__name__ not in own:
                    setattr(cls, method.__name__, method)
            return cls

        return decorate


def __eq__(self: Any, other: object) -> Any:
    cls = type(self)
    if type(other) is not cls:
        return NotImplemented
    get = cls.__dict__.get("_compared_fields") or _find_compared_fields(cls)
    return get(self) == get(other)


def __hash__(self: Any) -> int:
    cls = type(self)
    get = cls.__dict__.get("_compared_fields") or _find_compared_fields(cls)
    return hash(get(self))


@recursive_repr()
def __repr__(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _find_compared_fields(cls: Any) -> Any:
    """Return a function from an instance to the values of the fields that are compared. The class keeps it."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    get = attrgetter(*names) if names else (lambda _: ())
    cls._compared_fields = get
    return get
