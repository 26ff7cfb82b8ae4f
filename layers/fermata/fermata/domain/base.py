"""Define the base classes of immutable models: of values with a JSON form, of values that a row stores, and of both.

A model is built when it is first used. One that a usual turn uses says `defer_build=False`, so that it is built while
its function is imported (decision 0608).
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from fermata.domain.wire_names import to_wire_name


class DomainModel(BaseModel):
    """An immutable value. `to_wire` and `from_wire` convert it to and from the JSON of the API."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, alias_generator=to_wire_name, populate_by_name=True, extra="ignore"
    )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form: camelCase names; members that are None are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Parse the JSON form.

        Raises:
            pydantic.ValidationError: The value does not match the model.
        """
        return cls.model_validate(value)


class StoredNames:
    """The names under which rows store fields that were renamed, as the alias generator of a `StoredModel`.

    A field that is not in `stored_by_field` is stored under its own name.
    """

    def __init__(self, stored_by_field: Mapping[str, str]) -> None:
        self.stored_by_field = stored_by_field

    def __call__(self, field: str) -> str:
        return self.stored_by_field.get(field, field)


ROW_ATTRIBUTES = frozenset({"pk", "sk", "v", "ttl"})
"""Attributes that a row has besides the values of its model."""


class RecordModel(DomainModel):
    """A value with a JSON form that a row stores under the names of its fields.

    Members that a newer version has added are kept, and written again with the row (decision 0253). `to_known` leaves
    them out, because only that version knows whether they may be seen.
    """

    model_config = ConfigDict(extra="allow")

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Parse what a row stores.

        Raises:
            pydantic.ValidationError: The row does not match the model.
        """
        return cls.model_validate({name: member for name, member in row.items() if name not in ROW_ATTRIBUTES})

    def to_known(self, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the JSON form of the fields that are known here, without those that are excluded.

        A member that is a `RecordModel` has to be excluded and added by itself.
        """
        known = set(type(self).model_fields) - exclude
        return self.model_dump(mode="json", by_alias=True, include=known)


class StoredModel(BaseModel):
    """An immutable value that a row stores. The names in rows never change (decision 0132).

    Members that a newer version has added are kept, and written again with the row (decision 0253).
    """

    model_config = ConfigDict(
        defer_build=True, frozen=True, alias_generator=StoredNames({}), populate_by_name=True, extra="allow"
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        names = cls.model_config.get("alias_generator")
        unknown = names.stored_by_field.keys() - cls.model_fields.keys() if isinstance(names, StoredNames) else ()
        if unknown:
            raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}.")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with changed fields.

        Raises:
            TypeError: A field is unknown, which pydantic would ignore.
        """
        if unknown := (update or {}).keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}.")
        return super().model_copy(update=update, deep=deep)

    def to_stored(self, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the attributes of a DynamoDB item, without fields that are None."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude=set(exclude))

    def to_stored_json(self, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the JSON form for an attribute of text, without fields that have their default."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(exclude))

    @classmethod
    def from_stored(cls, value: Any) -> Self:
        """Parse what a row stores. Only stored names are understood.

        Raises:
            pydantic.ValidationError: The value does not match the model.
        """
        if isinstance(value, dict):
            value = {name: member for name, member in value.items() if name not in ROW_ATTRIBUTES}
        return cls.model_validate(value, by_alias=True, by_name=False)
