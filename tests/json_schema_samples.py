"""Make values of a JSON Schema, for requests and events without a sample of their own."""

from typing import Any


def make_sample(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Make a value with all members of its schema. It may break rules that a schema does not say."""
    if "$ref" in schema:
        return make_sample(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "properties" in schema:
        names = next(iter(schema.get("oneOf", [])), {}).get("required", schema["properties"])
        return {name: make_sample(schema["properties"][name], definitions) for name in names}
    if "anyOf" in schema or "oneOf" in schema:
        return make_sample((schema.get("anyOf") or schema["oneOf"])[0], definitions)
    match schema.get("type"):
        case "object":
            return {}
        case "array":
            return [make_sample(schema.get("items", {}), definitions)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return schema.get("const") or next(iter(schema.get("enum", ["x"])))
