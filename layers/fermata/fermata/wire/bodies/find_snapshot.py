"""Find the snapshot of a request: in its body, or uploaded before (decisions 0110, 0113, 0151)."""

import re
from functools import partial

from fermata.aws import uploads
from fermata.aws.blob_store import compress_json
from fermata.aws.lazy_snapshot import LazySnapshot, SnapshotContent
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.turn_requests import SnapshotBody
from fermata.wire.http.json_body import INVALID_BODY_PREFIX, decode_json_text, parse_json_object

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD]")
_UNUSABLE = "The uploaded snapshot cannot be used."


def find_snapshot(resources: Resources, caller: Caller, body: SnapshotBody) -> LazySnapshot | None:
    """Return the snapshot in a body, or the upload that it refers to, which is not fetched yet.

    Its `fetch` raises ApiError when the upload cannot be fetched (see `fetch_upload`), is no JSON object, or is too
    large to be parsed.

    Args:
        caller: The user who has to own the upload.
        body: The request's body, with `snapshot`, `snapshotRef` or neither.

    Raises:
        InvalidRequest: The reference is none to a snapshot.
    """
    if body.snapshot_ref is not None:
        upload = uploads.parse_upload_ref(body.snapshot_ref, "snapshot")
        return LazySnapshot(upload.sha256, partial(_fetch_snapshot, resources, caller, upload))
    if body.snapshot is None:
        return None
    return LazySnapshot.from_value(body.snapshot)


def _fetch_snapshot(resources: Resources, caller: Caller, upload: uploads.Upload) -> SnapshotContent:
    raw = uploads.fetch_upload(resources, caller, upload)
    compressed = compress_json(raw)
    try:
        text = decode_json_text(raw)
        # Parsing replaces lone surrogates. The upload is then stored as parsed, not as uploaded.
        may_have_surrogates = _SURROGATE_ESCAPE.search(raw) is not None
        del raw  # each of these is as large as the snapshot
        value = parse_json_object(text)
    except PayloadTooLarge as error:
        raise PayloadTooLarge(f"{_UNUSABLE} {error.message}") from error
    except InvalidRequest as error:
        raise InvalidRequest(f"{_UNUSABLE} {error.message.removeprefix(INVALID_BODY_PREFIX).strip()}") from error
    return SnapshotContent(value, None if may_have_surrogates else compressed)
