"""What a tool was given, read member by member; whatever does not fit is told with its name."""

from typing import Any

from fermata_client.html.errors import EditError

ToolArguments = dict[str, Any]


def required_text(given: ToolArguments, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise EditError(f"`{name}` is missing: it must be a text.")
    return value


def optional_text(given: ToolArguments, name: str) -> str:
    """Empty when it was left out."""
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise EditError(f"`{name}` must be a text.")
    return value or ""


def optional_integer(given: ToolArguments, name: str, least: int = 0, most: int | None = None) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    limit = f"from {least} up" if most is None else f"from {least} to {most}"
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        raise EditError(f"`{name}` must be a whole number {limit}.")
    return value


def optional_number(given: ToolArguments, name: str) -> float | None:
    value = given.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise EditError(f"`{name}` must be a number, not “{value}”.") from None
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise EditError(f"`{name}` must be a number.")
    return None if value is None else float(value)


def optional_object(given: ToolArguments, name: str) -> ToolArguments:
    """An object; empty when it was left out."""
    value = given.get(name)
    if value is not None and not isinstance(value, dict):
        raise EditError(f"`{name}` must be an object.")
    return value or {}


def required_objects(given: ToolArguments, name: str) -> list[ToolArguments]:
    value = given.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise EditError(f"`{name}` must be a list of objects, with at least one in it.")
    return value


def required_texts(given: ToolArguments, name: str) -> list[str]:
    value = given.get(name)
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise EditError(f"`{name}` must be a list of texts, with at least one in it.")
    return value
