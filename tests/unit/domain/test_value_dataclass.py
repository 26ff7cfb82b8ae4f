from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import pytest

from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class Loaf:
    flour: str
    grams: int = 500
    secret: str = field(default="starter", repr=False)
    baked_at: float = field(default=0.0, compare=False)

    @cached_property
    def slices(self) -> int:
        return self.grams // 50


@value_dataclass(frozen=True)
class SweetLoaf(Loaf):
    sugar: int = 0


@value_dataclass(frozen=True, kw_only=True)
class Oven:
    degrees: int


@value_dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class PlainLoaf:
    flour: str
    grams: int = 500
    secret: str = field(default="starter", repr=False)
    baked_at: float = field(default=0.0, compare=False)


def test_a_value_is_shown_and_hashed_as_a_dataclass_is() -> None:
    loaf, plain = Loaf("rye", 700), PlainLoaf("rye", 700)
    assert repr(loaf) == repr(plain).replace("PlainLoaf", "Loaf")
    assert hash(loaf) == hash(plain)
    assert [each.name for each in fields(loaf)] == [each.name for each in fields(plain)]


def test_values_are_equal_by_the_fields_that_are_compared() -> None:
    loaf = Loaf("rye", baked_at=3.0)
    assert loaf.slices == 10
    assert loaf == Loaf("rye", baked_at=9.0)
    assert {loaf: "mine"}[Loaf("rye")] == "mine"
    assert loaf != Loaf("rye", secret="yeast")
    assert loaf != replace(loaf, grams=501)
    assert loaf != PlainLoaf("rye")
    assert Nothing() == Nothing()


def test_a_value_of_a_subclass_is_another_value() -> None:
    assert Loaf("rye") != SweetLoaf("rye")
    assert SweetLoaf("rye", sugar=1) != SweetLoaf("rye", sugar=2)
    assert repr(SweetLoaf("rye", sugar=2)) == "SweetLoaf(flour='rye', grams=500, baked_at=0.0, sugar=2)"


def test_a_value_that_holds_itself_is_shown_once() -> None:
    inner: list[object] = []
    loaf = Loaf(inner)  # type: ignore[arg-type]
    inner.append(loaf)
    assert repr(loaf) == "Loaf(flour=[...], grams=500, baked_at=0.0)"


def test_fields_are_given_by_name_where_the_class_says_so() -> None:
    assert Oven(degrees=230).degrees == 230
    with pytest.raises(TypeError, match="positional"):
        Oven(230)  # type: ignore[misc]


def test_only_values_are_made_like_this() -> None:
    with pytest.raises(TypeError, match="A value is frozen"):
        value_dataclass(frozen=False)
