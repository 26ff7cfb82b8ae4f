"""Convert pydantic's own JSON Schema of a model to the plain style, to compare `build_json_schema` with it."""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_DROPPED_KEYWORDS = {"title", "$defs", "$ref", "anyOf", "oneOf", "enum", "properties", "items", "discriminator"}


def build_pydantic_schema(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema()
    return _simplify(raw, raw.get("$defs", {}))


def _simplify(node: Schema, defs: dict[str, Schema]) -> Schema:
    if "$ref" in node:
        return {**_simplify(defs[node["$ref"].rsplit("/", 1)[-1]], defs), **_keep_annotations(node)}
    if variants := node.get("anyOf") or node.get("oneOf"):
        return _simplify_union(
            [_simplify(variant, defs) for variant in variants if variant.get("type") != "null"], node
        )
    if "enum" in node:
        return _simplify_union([{"const": value, "type": _TYPE_NAMES[type(value)]} for value in node["enum"]], node)
    if node.get("type") == "object":
        return _simplify_object(node, defs)
    plain = {key: value for key, value in node.items() if key not in _DROPPED_KEYWORDS and value is not None}
    return {**plain, "items": _simplify(node["items"], defs)} if "items" in node else plain


def _simplify_union(variants: list[Schema], node: Schema) -> Schema:
    return {**(variants[0] if len(variants) == 1 else {"anyOf": variants}), **_keep_annotations(node)}


def _simplify_object(node: Schema, defs: dict[str, Schema]) -> Schema:
    plain: Schema = {"type": "object"}
    if "properties" in node or "additionalProperties" not in node:
        plain["properties"] = {key: _simplify(sub, defs) for key, sub in node.get("properties", {}).items()}
    if rest := node.get("additionalProperties"):
        plain["patternProperties"] = {"^(.*)$": {} if rest is True else _simplify(rest, defs)}
    return {**plain, "required": node["required"]} if node.get("required") else plain


def _keep_annotations(node: Schema) -> Schema:
    return {key: node[key] for key in ("description", "default") if node.get(key) is not None}
