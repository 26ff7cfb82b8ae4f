"""Define base models and field types of request bodies.

Nothing is coerced: a number is not accepted as a string (decision 0023).
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from fermata.aws.uploads import MAX_UPLOAD_REF_CHARS
from fermata.domain.wire_names import to_wire_name


class LenientBody(BaseModel):
    """A body whose unknown members are ignored, because clients of other generations send them."""

    model_config = ConfigDict(frozen=True, alias_generator=to_wire_name, extra="ignore", strict=True)


class StrictBody(LenientBody):
    """A body whose unknown members are refused by name, so that a misspelled member does not look like success."""

    model_config = ConfigDict(extra="forbid")


def _check_header_value(key: str) -> str:
    """Check an API key, which is sent to its provider in a header."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("must be a key: printable ASCII without spaces")
    return key


def _to_integer(number: Any) -> Any:
    """Accept 2.0 as an integer, because JSON has one type of numbers."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


JSON_INTEGER = BeforeValidator(_to_integer)
NULL_SCHEMA: JsonDict = {"type": "null"}
_NOT_BLANK = Field(json_schema_extra={"pattern": r"\S"})
ResourceId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
NonBlankTitle = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), _NOT_BLANK]
NonBlankUrl = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000), _NOT_BLANK]
ApiKey = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=500),
    AfterValidator(_check_header_value),
    Field(json_schema_extra={"pattern": r"^\s*[!-~]*\s*$"}),
]
"""A provider's API key; empty for a server that needs none."""
ContentSpaceName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?)?$"),
]
"""A content space: `site/environment`, or `site` for its environment `main`."""
UploadRef = Annotated[str, StringConstraints(min_length=1, max_length=MAX_UPLOAD_REF_CHARS)]
"""The reference of an upload, as the response of `POST uploads` holds it."""
Revision = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""The revision of the editor's document. The service compares revisions and does not interpret them."""
