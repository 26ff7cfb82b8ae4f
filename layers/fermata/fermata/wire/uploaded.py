"""Snapshots that were uploaded before, because no request could hold them: a body names them by reference."""

import re
import sys
from typing import Any, NamedTuple

from fermata.aws import uploads
from fermata.aws.blobs import Packed, pack
from fermata.aws.desk import Desk
from fermata.wire.bodies import ChatBody, ToolResultBody
from fermata.wire.http import BAD_BODY, as_object, as_text
from fermata.words.caller import Caller
from fermata.words.errors import Invalid, TooLarge

MOST_MEMORY = 90_000_000
"""Bytes that reading a snapshot may take, text and values together; the smallest function that does it has 208 MB."""
OF_A_STRING, OF_A_CONTAINER = 60, 120
"""About what Python needs for one, besides its characters."""
HALF = re.compile(rb"\\u[dD]")
"""Escapes of half characters; where they are, what is stored is what was read, without them."""
CANNOT = "The uploaded snapshot cannot be used."


class Snapshot(NamedTuple):
    """What the editor shows, and how it is stored, once that is known."""

    value: Any = None
    packed: Packed | None = None


def snapshot_of(desk: Desk, caller: Caller, body: ChatBody | ToolResultBody) -> Snapshot:
    """The one in the body, or the one it refers to: raises what uploads.fetch does, and Invalid for broken JSON."""
    if body.snapshot_ref is None:
        return Snapshot(body.snapshot)
    raw = uploads.fetch(desk, caller, uploads.read_ref(body.snapshot_ref, "snapshot"))
    packed = pack(raw)
    try:
        text = as_text(raw)
        has_half_characters = HALF.search(raw) is not None
        del raw  # each of these is as large as the snapshot
        _check_weight(text)
        value = as_object(text)
    except Invalid as error:
        raise Invalid(f"{CANNOT} {error.error.removeprefix(BAD_BODY).strip()}") from error
    return Snapshot(value, None if has_half_characters else packed)


def _check_weight(text: str) -> None:
    containers = text.count("{") + text.count("[")
    needed = sys.getsizeof(text) + len(text) + text.count('"') // 2 * OF_A_STRING + containers * OF_A_CONTAINER
    if needed > MOST_MEMORY:
        raise TooLarge(f"{CANNOT} It has too many parts to be read at once. Leave out what no tool needs.")
