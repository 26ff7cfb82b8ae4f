"""What every word has in common: frozen, camelCase outside, snake_case inside."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class DomainModel(BaseModel):
    """An immutable noun. `wire()` and `read()` are the only two ways across the edge."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_wire(self) -> dict[str, Any]:
        """The JSON shape outside: camelCase, absent members left out instead of null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Understand a wire value; raises pydantic's ValidationError."""
        return cls.model_validate(value)
