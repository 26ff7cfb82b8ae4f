"""Read the form that OpenAI's clients ask an answer to have: text, JSON, or JSON of a schema (decision 0440)."""

import json
import re
from typing import Any

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.run_settings import OutputFormat
from fermata.tools.schema.check_manifest_schema import find_schema_problem
from fermata.tools.schema.validate_manifest_value import MAX_SCHEMA_DEPTH, measure_schema_depth
from fermata.wire.bodies.openai_requests import OpenAIItem

MAX_OUTPUT_SCHEMA_CHARS = 50_000
"""Of the JSON of a schema, which is part of the turn's row and of each request to the model."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_output_format(asked: OpenAIItem | None) -> OutputFormat | None:
    """Return the form of an answer; None for text.

    Args:
        asked: `response_format` of a chat completion, whose schema is a member deeper, or `text.format` of a response.

    Raises:
        InvalidRequest: The type is unknown, or there is no schema.
        PayloadTooLarge: The schema is too long.
    """
    match (asked or {}).get("type", "text"):
        case "text":
            return None
        case "json_object":
            return OutputFormat(name="object", json_schema={"type": "object"})
        case "json_schema":
            return _read_schema(asked or {})
        case other:
            raise InvalidRequest(
                f"Answers of the format {str(other)[:40]!r} are not supported: ask for text, json_object or "
                "json_schema."
            )


def _read_schema(asked: OpenAIItem) -> OutputFormat:
    inner = asked.get("json_schema")
    described: dict[str, Any] = inner if isinstance(inner, dict) else asked
    schema, name = described.get("schema"), described.get("name")
    if not isinstance(schema, dict):
        raise InvalidRequest("A format of the type json_schema needs a 'schema', which is an object.")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest("A format of the type json_schema needs a 'name' of at most 64 letters, digits, _ and -.")
    about = described.get("description")
    if len(json.dumps(schema)) + len(about if isinstance(about, str) else "") > MAX_OUTPUT_SCHEMA_CHARS:
        raise PayloadTooLarge(f"The schema of an answer may have {MAX_OUTPUT_SCHEMA_CHARS:,} characters.")
    if measure_schema_depth(schema) > MAX_SCHEMA_DEPTH:
        raise InvalidRequest(f"The schema of an answer may be nested {MAX_SCHEMA_DEPTH} levels deep.")
    if problem := find_schema_problem(schema):
        raise InvalidRequest(f"The schema of the answer is no JSON Schema: {problem}.")
    return OutputFormat(name=name, description=about if isinstance(about, str) else "", json_schema=schema)
