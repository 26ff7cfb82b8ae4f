"""JSON Schema of a pydantic model in the plain style every provider takes: one inlined object.

No titles, no `$defs`, no `additionalProperties`, literal unions as `anyOf` of constants, maps as `patternProperties`,
and no null: an optional member is left out, never sent empty.
"""

from functools import cache
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

ANY_KEY = "^(.*)$"
_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_KEPT = (
    "type",
    "const",
    "description",
    "default",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "uniqueItems",
)


@cache
def wire_schema(model: type[BaseModel]) -> Schema:
    """The same object at every call: read it, do not write to it."""
    raw = model.model_json_schema()
    return _plain(raw, raw.get("$defs", {}), ())


def _plain(node: Schema, defs: dict[str, Schema], inside: tuple[str, ...]) -> Schema:
    if "$ref" in node:
        return _inlined(node, defs, inside)
    if variants := node.get("anyOf") or node.get("oneOf"):
        return _union([_plain(one, defs, inside) for one in variants if one.get("type") != "null"], node)
    if "enum" in node:
        return _union([{"const": value, "type": _TYPE_NAMES[type(value)]} for value in node["enum"]], node)
    if node.get("type") == "object":
        return _object(node, defs, inside)
    plain = {key: node[key] for key in _KEPT if node.get(key) is not None}
    if "prefixItems" in node:
        raise TypeError("A tool input cannot hold a tuple of fixed places; use a list or an object.")
    if "items" in node:
        plain["items"] = _plain(node["items"], defs, inside)
    return plain


def _inlined(node: Schema, defs: dict[str, Schema], inside: tuple[str, ...]) -> Schema:
    name = node["$ref"].rsplit("/", 1)[-1]
    if name in inside:
        raise TypeError(f"A tool input cannot contain itself: {name} would never end when inlined.")
    return {**_plain(defs[name], defs, (*inside, name)), **_told(node)}


def _union(variants: list[Schema], node: Schema) -> Schema:
    only_one = variants[0] if len(variants) == 1 else {"anyOf": variants}
    return {**only_one, **_told(node)}


def _object(node: Schema, defs: dict[str, Schema], inside: tuple[str, ...]) -> Schema:
    """A model's docstring is for readers of the code; only a member's own description goes to the model."""
    plain: Schema = {"type": "object"}
    if "properties" in node or "additionalProperties" not in node:
        plain["properties"] = {key: _plain(sub, defs, inside) for key, sub in node.get("properties", {}).items()}
    if rest := node.get("additionalProperties"):
        plain["patternProperties"] = {ANY_KEY: {} if rest is True else _plain(rest, defs, inside)}
    if node.get("required"):
        plain["required"] = node["required"]
    return plain


def _told(node: Schema) -> Schema:
    return {key: node[key] for key in ("description", "default") if node.get(key) is not None}
