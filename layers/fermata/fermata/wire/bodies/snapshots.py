"""Snapshots that were uploaded before, because no request could hold them: a body names them by reference."""

import re
import sys
from typing import Any, NamedTuple

from fermata.aws import uploads
from fermata.aws.blob_store import CompressedJson, compress_json
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.requests import ChatBody, ToolResultBody
from fermata.wire.http.messages import INVALID_BODY_PREFIX, decode_json_text, parse_json_object

MAX_SNAPSHOT_MEMORY_BYTES = 90_000_000
"""Bytes that reading a snapshot may take, text and values together; the smallest function that does it has 208 MB."""
OF_A_STRING, OF_A_CONTAINER = 60, 120
"""About what Python needs for one, besides its characters."""
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD]")
"""Escapes of half characters; where they are, what is stored is what was read, without them."""
_UNUSABLE = "The uploaded snapshot cannot be used."


class RequestSnapshot(NamedTuple):
    """What the editor shows, and how it is stored, once that is known."""

    value: Any = None
    packed: CompressedJson | None = None


def resolve_snapshot(resources: Resources, caller: Caller, body: ChatBody | ToolResultBody) -> RequestSnapshot:
    """The one in the body, or the one it refers to: raises what uploads.fetch does, and Invalid for broken JSON."""
    if body.snapshot_ref is None:
        return RequestSnapshot(body.snapshot)
    raw = uploads.fetch_upload(resources, caller, uploads.parse_upload_ref(body.snapshot_ref, "snapshot"))
    packed = compress_json(raw)
    try:
        text = decode_json_text(raw)
        has_half_characters = _SURROGATE_ESCAPE.search(raw) is not None
        del raw  # each of these is as large as the snapshot
        _check_weight(text)
        value = parse_json_object(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{_UNUSABLE} {error.message.removeprefix(INVALID_BODY_PREFIX).strip()}") from error
    return RequestSnapshot(value, None if has_half_characters else packed)


def _check_weight(text: str) -> None:
    containers = text.count("{") + text.count("[")
    needed = sys.getsizeof(text) + len(text) + text.count('"') // 2 * OF_A_STRING + containers * OF_A_CONTAINER
    if needed > MAX_SNAPSHOT_MEMORY_BYTES:
        raise PayloadTooLarge(f"{_UNUSABLE} It has too many parts to be read at once. Leave out what no tool needs.")
