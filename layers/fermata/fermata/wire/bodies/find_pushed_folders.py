"""Find the files of the folders that a push of agents names: in its body, or uploaded before (decision 0446)."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.agent_requests import FolderFile, NewAgents, UploadedFolder
from fermata.wire.http.json_body import INVALID_BODY_PREFIX, decode_json_text, parse_json_object

MAX_PUSHED_UPLOAD_BYTES = 150_000_000
"""Of all uploads of a push: 100 MB of files in Base64, with their paths. A function holds so much in memory."""


def iter_pushed_folders(
    resources: Resources, caller: Caller, body: NewAgents
) -> Iterator[tuple[str, Sequence[FolderFile]]]:
    """Yield parts of folders, each with the `basePath` of its folder. One upload is held at a time.

    Args:
        resources: The bucket.
        caller: Who pushes, and has to own the uploads.
        body: The request.

    Raises:
        InvalidRequest: A reference is none to an upload of files, or what was uploaded are no files.
        PayloadTooLarge: The uploads are too large together.
        Gone, NotFound, Conflict: As `uploads.fetch_upload`.
    """
    found = [
        (name, uploads.parse_upload_ref(ref, "agentFiles"))
        for name, refs in body.folder_uploads.items()
        for ref in refs
    ]
    if (size := sum(upload.size for _, upload in found)) > MAX_PUSHED_UPLOAD_BYTES:
        raise PayloadTooLarge(
            f"The uploaded files of a push may have {MAX_PUSHED_UPLOAD_BYTES:,} bytes of JSON; these have {size:,}."
        )
    yield from body.folders.items()
    for name, upload in found:
        yield name, _fetch_files(resources, caller, name, upload)


def _fetch_files(resources: Resources, caller: Caller, name: str, upload: uploads.Upload) -> Sequence[FolderFile]:
    raw = uploads.fetch_upload(resources, caller, upload)
    try:
        return UploadedFolder.model_validate(parse_json_object(decode_json_text(raw))).files
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        problem = f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"
    except PayloadTooLarge as error:
        raise PayloadTooLarge(f"The uploaded files of the folder {name!r} cannot be used. {error.message}") from error
    except InvalidRequest as error:
        problem = error.message.removeprefix(INVALID_BODY_PREFIX).strip()
    raise InvalidRequest(f"The uploaded files of the folder {name!r} cannot be used. {problem}")
