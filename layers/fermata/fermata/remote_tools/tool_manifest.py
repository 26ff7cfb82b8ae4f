"""Define the manifest that describes a tool, and validate one strictly."""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, StringConstraints, ValidationError

from fermata.domain.base import DomainModel
from fermata.domain.errors import InvalidRequest
from fermata.tools.schema.check_manifest_schema import find_schema_problem
from fermata.tools.schema.validate_manifest_value import MAX_SCHEMA_DEPTH, measure_schema_depth

MIN_TIMEOUT_MS = 250
MAX_TIMEOUT_MS = 120_000
"""A longer `timeoutMs` is accepted and counts as this (decision 0326)."""
MAX_ATTEMPTS = 5
MAX_MANIFEST_BYTES = 24_000
MAX_NAME_CHARS = 120
_LOCATION_WORDS = {"missing": "is required", "extra_forbidden": "is not known here"}


class InvalidManifest(InvalidRequest):
    """A manifest breaks a rule. `field` is the path of the member, such as `retryPolicy.maxAttempts`."""

    code = "invalid_manifest"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"The manifest is invalid: {field} {problem}.")
        self.field = field
        self.details = {"field": field}


def _to_plain_number(number: float) -> int | float:
    """Return 3000 for 3000.0, so that a manifest is shown as it was written."""
    return int(number) if float(number).is_integer() else number


def _check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if measure_schema_depth(schema) > MAX_SCHEMA_DEPTH:
        raise ValueError(f"is nested more than {MAX_SCHEMA_DEPTH} levels deep")
    return schema


def _check_input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise ValueError("has to describe an object")
    return _check_schema(schema)


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Milliseconds = Annotated[
    float, Field(strict=True, ge=0, allow_inf_nan=False), PlainSerializer(_to_plain_number, return_type=Any)
]


class ManifestRetryPolicy(DomainModel):
    """How often a tool is tried. The wait before attempt n+1 is `backoff_ms * n`, and a random part more."""

    model_config = ConfigDict(extra="forbid")

    max_attempts: Annotated[int, Field(strict=True, ge=1, le=MAX_ATTEMPTS)]
    backoff_ms: Annotated[_Milliseconds, Field(le=MAX_TIMEOUT_MS)] = 0


class ToolManifest(DomainModel):
    """The description of a tool: what the model reads, and how a call is treated."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[_Text, Field(max_length=MAX_NAME_CHARS)]
    description: _Text
    input_schema: Annotated[dict[str, Any], AfterValidator(_check_input_schema)]
    output_schema: Annotated[dict[str, Any], AfterValidator(_check_schema)]
    capability: Literal["read", "write"]
    timeout_ms: Annotated[_Milliseconds, Field(ge=MIN_TIMEOUT_MS)]
    retry_policy: ManifestRetryPolicy
    idempotent: Annotated[bool, Field(strict=True)]
    enabled: Annotated[bool, Field(strict=True)] = True

    @property
    def timeout_seconds(self) -> float:
        """The limit of one attempt."""
        return min(self.timeout_ms, MAX_TIMEOUT_MS) / 1000


def normalize_tool_name(name: str) -> str:
    """Return the form by which names are compared: trimmed, without case."""
    return name.strip().casefold()


def parse_manifest(value: Any) -> ToolManifest:
    """Parse a manifest from JSON.

    Raises:
        InvalidManifest: A member is missing, unknown or wrong; the first one is named.
    """
    if not isinstance(value, dict):
        raise InvalidManifest("manifest", "has to be an object")
    try:
        manifest = ToolManifest.from_wire(value)
    except ValidationError as error:
        raise _to_invalid_manifest(error) from None
    if len(json.dumps(value)) > MAX_MANIFEST_BYTES:
        raise InvalidManifest("manifest", f"has more than {MAX_MANIFEST_BYTES} characters")
    if not manifest.name.isprintable():
        raise InvalidManifest("name", "has characters that nobody can see")
    for field, schema in (("inputSchema", manifest.input_schema), ("outputSchema", manifest.output_schema)):
        if problem := find_schema_problem(schema):
            raise InvalidManifest(field, f"is no JSON Schema: {problem}")
    return manifest


def _to_invalid_manifest(error: ValidationError) -> InvalidManifest:
    detail = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(part for part in detail["loc"] if isinstance(part, str) and part not in ("int", "float"))
    problem = _LOCATION_WORDS.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    return InvalidManifest(field or "manifest", problem[:1].lower() + problem[1:])
