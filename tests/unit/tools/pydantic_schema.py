"""What pydantic itself says about a model, brought into the plain style: what `wire_schema` is held against."""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_LEFT_OUT = {"title", "$defs", "$ref", "anyOf", "oneOf", "enum", "properties", "items", "discriminator"}


def build_pydantic_schema(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema()
    return _plain(raw, raw.get("$defs", {}))


def _plain(node: Schema, defs: dict[str, Schema]) -> Schema:
    if "$ref" in node:
        return {**_plain(defs[node["$ref"].rsplit("/", 1)[-1]], defs), **_told(node)}
    if variants := node.get("anyOf") or node.get("oneOf"):
        return _union([_plain(one, defs) for one in variants if one.get("type") != "null"], node)
    if "enum" in node:
        return _union([{"const": value, "type": _TYPE_NAMES[type(value)]} for value in node["enum"]], node)
    if node.get("type") == "object":
        return _object(node, defs)
    plain = {key: value for key, value in node.items() if key not in _LEFT_OUT and value is not None}
    return {**plain, "items": _plain(node["items"], defs)} if "items" in node else plain


def _union(variants: list[Schema], node: Schema) -> Schema:
    return {**(variants[0] if len(variants) == 1 else {"anyOf": variants}), **_told(node)}


def _object(node: Schema, defs: dict[str, Schema]) -> Schema:
    plain: Schema = {"type": "object"}
    if "properties" in node or "additionalProperties" not in node:
        plain["properties"] = {key: _plain(sub, defs) for key, sub in node.get("properties", {}).items()}
    if rest := node.get("additionalProperties"):
        plain["patternProperties"] = {"^(.*)$": {} if rest is True else _plain(rest, defs)}
    return {**plain, "required": node["required"]} if node.get("required") else plain


def _told(node: Schema) -> Schema:
    return {key: node[key] for key in ("description", "default") if node.get(key) is not None}
