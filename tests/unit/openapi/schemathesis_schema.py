"""The OpenAPI document as schemathesis loads it, in front of all functions."""

import json
from copy import deepcopy
from typing import Any, TypeAlias

import schemathesis
from jsonschema import Draft202012Validator
from schemathesis import Case, Response

from fermata.wire.openapi.document import get_openapi_document
from fermata.wire.operations import surface
from fermata.wire.renderers.ndjson import NDJSON_CONTENT_TYPE
from tests.unit.openapi.service import GATEWAY

AnyCase: TypeAlias = Case[Any]


def forbid_additional_properties(document: dict[str, Any]) -> dict[str, Any]:
    """Forbid members of responses that the document does not name."""
    closed = deepcopy(document)
    bodies = {operation.body.__name__ for operation in surface.OPERATIONS if operation.body} | {"Document"}
    for name, schema in closed["components"]["schemas"].items():
        if "properties" in schema and name not in bodies:
            schema["additionalProperties"] = False
    return closed


def without_large_limits(part: Any) -> Any:
    """Drop limits of long texts: generating them takes longer than refusing them (unit/wire/test_request_bodies.py)."""
    if isinstance(part, list):
        return [without_large_limits(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {name: without_large_limits(item) for name, item in part.items() if name != "maxLength" or item < 1_000}


DOCUMENT = without_large_limits(forbid_additional_properties(get_openapi_document()))
CONFIG = schemathesis.Config.from_dict({"seed": 1, "base-url": "http://localhost"})
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)
schema.app = GATEWAY
STREAM_LINE_VALIDATOR = Draft202012Validator(
    {"$ref": "#/components/schemas/StreamLine", "components": DOCUMENT["components"]}
)


def check_stream_lines(response: Response) -> None:
    """Check the lines of a stream, which schemathesis takes for one text."""
    if response.headers.get("content-type") == [NDJSON_CONTENT_TYPE]:
        assert response.content.endswith(b"\n")
        for text in filter(None, response.content.decode().split("\n")):
            STREAM_LINE_VALIDATOR.validate(json.loads(text))
