"""Define the fields of a content model: the 27 types, and what a field asks of its value."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from fermata.domain.base import DomainModel


class FieldType(StrEnum):
    """What a field holds."""

    STRING = "string"
    TEXT = "text"
    EMAIL = "email"
    URL = "url"
    SLUG = "slug"
    COLOR = "color"
    PHONE = "phone"
    CODE = "code"
    ICON = "icon"
    MARKDOWN = "markdown"
    RICHTEXT = "richtext"
    NUMBER = "number"
    INTEGER = "integer"
    DECIMAL = "decimal"
    PERCENT = "percent"
    RATING = "rating"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    IMAGE = "image"
    VIDEO = "video"
    FILE = "file"
    RELATION = "relation"
    RELATIONS = "relations"
    SELECT = "select"
    ARRAY = "array"
    OBJECT = "object"


NUMBER_TYPES = frozenset(
    {FieldType.NUMBER, FieldType.INTEGER, FieldType.DECIMAL, FieldType.PERCENT, FieldType.RATING},
)
MEDIA_TYPES = frozenset({FieldType.IMAGE, FieldType.VIDEO, FieldType.FILE})
RELATION_TYPES = frozenset({FieldType.RELATION, FieldType.RELATIONS})


def _list_targets(value: Any) -> Any:
    """Return the target of a relation as a list."""
    return (value,) if isinstance(value, str) else value


def _describe_items(value: Any) -> Any:
    """Return items that are only named by their type as a field."""
    return {"type": value} if isinstance(value, str) else value


class FieldDefinition(DomainModel):
    """A field of a model. Members that other programs have added stay in it.

    Attributes:
        min: The smallest number, or the fewest characters or items.
        max: The largest number, or the most characters or items.
        pattern: A regular expression that a part of the text has to match.
        options: The texts of which a `select` is one.
        model: The models that a relation may point to.
        items: What an `array` holds.
        fields: The members of an `object`.
        accept: The media types or endings of files, as in HTML: `image/*, .pdf`.
        max_size: The most bytes of a file.
    """

    model_config = ConfigDict(extra="allow")

    type: FieldType
    required: bool = False
    unique: bool = False
    default: Any = None
    min: float | None = None
    max: float | None = None
    pattern: str | None = None
    options: tuple[str, ...] | None = None
    model: Annotated[tuple[str, ...], BeforeValidator(_list_targets)] = ()
    items: Annotated["FieldDefinition | None", BeforeValidator(_describe_items)] = None
    fields: "dict[str, FieldDefinition] | None" = None
    accept: str | None = None
    max_size: Annotated[int | None, Field(ge=0)] = None
    description: str = ""

    @cached_property
    def known_options(self) -> frozenset[str]:
        """The options, to look them up."""
        return frozenset(self.options or ())

    @cached_property
    def known_targets(self) -> frozenset[str]:
        """The models that a relation may point to, to look them up."""
        return frozenset(self.model)

    @cached_property
    def required_members(self) -> tuple[str, ...]:
        """The members that an object has to have."""
        return tuple(name for name, member in (self.fields or {}).items() if member.required)

    def list_members(self, value: Mapping[str, Any]) -> list[str]:
        """Return the members that an object has or has to have, in their order: the others need no check."""
        members = self.fields or {}
        if len(members) <= len(value) + len(self.required_members):
            return list(members)
        wanted = {name for name in value if name in members}.union(self.required_members)
        return sorted(wanted, key=self._places_of_members.__getitem__)

    @cached_property
    def _places_of_members(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.fields or {})}
