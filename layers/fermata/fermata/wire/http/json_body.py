"""Parse request bodies: JSON that everything later can walk and store, and the model it has to fit (decision 0023)."""

import json
import math
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.repeated_names import find_repeated_name
from fermata.wire.bodies.validation_errors import format_validation_errors
from fermata.wire.http.json_memory import fits_into_memory
from fermata.wire.http.messages import HttpRequest

MAX_REQUEST_BYTES = 6 * 1024 * 1024
"""The largest event that Lambda takes. The local cloud and the ASGI application have no limit but this one."""
MAX_JSON_DEPTH = 200
"""Levels of nesting in a body, so that recursive code does not run out of stack."""
INVALID_BODY_PREFIX = "Invalid request body."
OVERSIZED_VALUES_MESSAGE = (
    "The request is too large: it has too many parts, or too long texts with emoji, to be read at once. "
    "Leave out what no tool needs."
)
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""Escapes of a JSON text. The group is a lone surrogate."""

_Model = TypeVar("_Model", bound=BaseModel)


def parse_body(request: HttpRequest, model: type[_Model], *, ignore_unknown: bool = False) -> _Model:
    """Parse the request's body.

    Args:
        ignore_unknown: Ignore unknown members, also where the model forbids them.

    Raises:
        InvalidRequest: The body is not as the model describes it. The error names the first wrong members, and never
            their values.
        PayloadTooLarge: The body has more than `MAX_REQUEST_BYTES`.
    """
    value = parse_json_body(request.body)
    try:
        return model.model_validate(value, extra="ignore" if ignore_unknown else None)
    except ValidationError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} {format_validation_errors(error)}") from error


def parse_json_body(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; the content type is ignored. Lone surrogates in its texts become U+FFFD.

    Raises:
        InvalidRequest: The body is no JSON object.
        PayloadTooLarge: The body, or what it stands for, is too large.
    """
    if len(body) > MAX_REQUEST_BYTES:
        raise PayloadTooLarge(
            f"The request is too large: it has more than {MAX_REQUEST_BYTES / 1e6:.1f} MB, and pictures, screenshot "
            "and page may have about 4.5 MB together. Send fewer or smaller pictures. A program uploads a larger "
            "snapshot first (POST uploads)."
        )
    if not body.strip():
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is empty; send a JSON object.")
    return parse_json_object(decode_json_text(body))


def decode_json_text(body: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is not UTF-8.") from error


def parse_json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        InvalidRequest: The text is not JSON, is no object, has a member twice, is nested too deep, or has a number
            that JSON or Python cannot hold.
        PayloadTooLarge: Its values would take more memory than a function has.
    """
    if not fits_into_memory(text):
        raise PayloadTooLarge(OVERSIZED_VALUES_MESSAGE)
    try:
        value = _parse_json(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is not JSON: {error.msg} at character {error.pos}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It holds a number that is too long.") from error
    if not isinstance(value, dict):
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It must be a JSON object.")
    if text.count("{") + text.count("[") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        raise _too_deep()
    return value


def _parse_json(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_unique_members, parse_float=_finite, parse_constant=_finite)
    if _has_lone_surrogate(text):
        # JSON can escape lone surrogates, UTF-8 cannot encode them. A round trip through UTF-16 replaces them.
        utf16 = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        value = json.loads(utf16.decode("utf-16-le", "replace"))
    return value


def _has_lone_surrogate(text: str) -> bool:
    if "\\ud" not in text and "\\uD" not in text:
        return False
    return any(escape[1] for escape in _ESCAPES.finditer(text))


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated = find_repeated_name(name for name, _ in pairs) or ""
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} The member {repeated[:80]!r} is there twice.")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} {text[:40]} is not a number JSON can hold.")
    return number


def _depth(value: Any) -> int:
    """Count levels without recursion. `type is` is faster than isinstance, and snapshots have 100,000 members."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        children = []
        for parent in level:
            for child in parent.values() if type(parent) is dict else parent:
                if type(child) is dict or type(child) is list:
                    children.append(child)
        level = children
    return depth


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"{INVALID_BODY_PREFIX} It is nested deeper than {MAX_JSON_DEPTH} levels.")
