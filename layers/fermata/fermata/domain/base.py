"""Define the base class of all domain models: frozen, with snake_case attributes and camelCase JSON."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class DomainModel(BaseModel):
    """An immutable value. `to_wire` and `from_wire` convert it to and from the JSON of the API."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

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
