"""Read the arguments of a tool call. A value of the wrong type raises `EditError` with the argument's name."""

from typing import Any

from fermata_client.html.edit_error import EditError

ToolArguments = dict[str, Any]


def required_text(arguments: ToolArguments, name: str) -> str:
    """Return a text that is not empty."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise EditError(f"`{name}` is missing: it must be a text.")
    return value


def optional_text(arguments: ToolArguments, name: str) -> str:
    """Return a text; empty if it is left out."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise EditError(f"`{name}` must be a text.")
    return value or ""


def optional_integer(
    arguments: ToolArguments, name: str, min_value: int = 0, max_value: int | None = None
) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():  # JSON makes no difference between 1 and 1.0
        value = int(value)
    limit = f"from {min_value} up" if max_value is None else f"from {min_value} to {max_value}"
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or value < min_value or (max_value is not None and value > max_value):
        raise EditError(f"`{name}` must be a whole number {limit}.")
    return int(value)


def optional_number(arguments: ToolArguments, name: str) -> float | None:
    """Return a number, which may be written as a text."""
    value = arguments.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise EditError(f"`{name}` must be a number, not “{value}”.") from None
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise EditError(f"`{name}` must be a number.")
    return None if value is None else float(value)


def optional_object(arguments: ToolArguments, name: str) -> ToolArguments:
    """Return an object; empty if it is left out."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, dict):
        raise EditError(f"`{name}` must be an object.")
    return value or {}


def required_objects(arguments: ToolArguments, name: str) -> list[ToolArguments]:
    value = arguments.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(member, dict) for member in value):
        raise EditError(f"`{name}` must be a list of objects, with at least one in it.")
    return value


def required_texts(arguments: ToolArguments, name: str) -> list[str]:
    """Return a list of texts. A single text is a list of one."""
    value = arguments.get(name)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise EditError(f"`{name}` must be a list of texts, with at least one in it.")
    return texts
