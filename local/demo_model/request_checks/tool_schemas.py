"""Check the parts of tool schemas that providers check, at every depth."""

import re
from collections.abc import Iterator
from typing import Any

from local.demo_model.request_checks.errors import require

_PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def check_schema(where: str, schema: dict[str, Any]) -> None:
    """Raise RequestRejected for a reference, an array without items, or a name of a member that is no plain name."""
    for part in _iter_schemas(schema):
        require("$ref" not in part, f"{where}: $ref is not supported")
        require(part.get("type") != "array" or "items" in part, f"{where}: array schema missing items.")
        for name in part.get("properties", {}):
            require(
                bool(_PROPERTY_NAME.fullmatch(name)),
                f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'",
            )


def _iter_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("patternProperties", {}).values()]
    inner += [schema.get("items"), schema.get("additionalProperties")]
    for part in [*inner, *schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]:
        yield from _iter_schemas(part)
