"""Find which entry already has a value that has to be unique. Values are compared as texts."""

from collections.abc import Mapping
from typing import Any

from fermata.content.fields import FieldDefinition


class UniqueValues:
    """The values of all entries in the fields that are unique. It is built once, and asked for each entry."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]], fields: Mapping[str, FieldDefinition]) -> None:
        """Read the values.

        Args:
            entries: The content of all entries of the model and locale, by id.
            fields: The fields of the model.
        """
        self._owners: dict[str, dict[str, list[str]]] = {
            name: {} for name, definition in fields.items() if definition.unique
        }
        for entry_id, entry in entries.items():
            self.add(entry_id, entry)

    def add(self, entry_id: str, entry: Mapping[str, Any]) -> None:
        """Add the values of an entry, such as of one that is about to be written together with others."""
        for name, owners in self._owners.items():
            if (value := entry.get(name)) is not None:
                owners.setdefault(format_unique_value(value), []).append(entry_id)

    def find_other_owner(self, field: str, value: Any, entry_id: str) -> str | None:
        """Return the id of another entry that has the value in this field, or None.

        Args:
            field: The field.
            value: The value.
            entry_id: The entry that may have it.
        """
        owners = self._owners.get(field, {}).get(format_unique_value(value), [])
        return next((owner for owner in owners if owner != entry_id), None)


def format_unique_value(value: Any) -> str:
    """Return the text by which values are compared. Numbers and booleans have the texts that JavaScript gives them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
