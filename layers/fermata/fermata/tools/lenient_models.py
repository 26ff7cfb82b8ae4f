"""Base class of models that read data from outside (snapshots, answers of a content system)."""

from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, model_validator

from fermata.domain.base import DomainModel

ModelT = TypeVar("ModelT", bound=DomainModel)
FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]


class LenientModel(DomainModel):
    """A model that ignores unknown members and reads null as the default of a member that has one.

    Editors write null as well as leaving a member out. Validators are built at first use, because most Lambda
    functions import these models without reading any data with them.
    """

    model_config = ConfigDict(defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _replace_null_by_default(cls, value: Any) -> Any:
        if not isinstance(value, dict) or None not in value.values():
            return value
        required = {field.alias or name for name, field in cls.model_fields.items() if field.is_required()}
        return {name: member for name, member in value.items() if member is not None or name in required}
