"""Reduce a JSON Schema to the words that the older form of Google's schemas has."""

from typing import Any

_WORDS = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf",
    "default",
})  # fmt: skip
_FORMATS = frozenset({"float", "double", "int32", "int64", "enum", "date-time"})


def reduce_schema(schema: Any) -> dict[str, Any]:
    """Return the schema without the words that the API refuses; what they mean is checked when the call arrives."""
    if not isinstance(schema, dict):
        return {}
    reduced: dict[str, Any] = {}
    for word, value in schema.items():
        match word:
            case "type" if isinstance(value, list):
                reduced |= _reduce_types(value)
            case "const":
                reduced["enum"] = [str(value)]
                reduced.setdefault("type", "string")
            case "oneOf" | "anyOf":
                reduced["anyOf"] = [reduce_schema(member) for member in value]
            case "properties":
                reduced["properties"] = {name: reduce_schema(member) for name, member in value.items()}
            case "items":
                reduced["items"] = reduce_schema(value)
            case "enum":
                reduced["enum"] = [str(member) for member in value if member not in (None, "")]
                reduced["type"] = "string"
            case "format" if value not in _FORMATS:
                pass
            case _ if word in _WORDS and not (word == "type" and "type" in reduced):
                reduced[word] = value
    return reduced


def _reduce_types(types: list[Any]) -> dict[str, Any]:
    """Return one type, with `nullable` for what may be null; of several, each as an alternative."""
    named = [name for name in types if name != "null"]
    nullable = {"nullable": True} if "null" in types else {}
    if len(named) == 1:
        return {"type": named[0]} | nullable
    return {"anyOf": [{"type": name} for name in named]} | nullable
