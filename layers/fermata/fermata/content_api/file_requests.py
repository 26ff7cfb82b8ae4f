"""Handle requests that write a space as files and read it from them."""

import hashlib
import json
from typing import Any

from fermata.aws import uploads
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import FileTree, format_project_files
from fermata.content.files.read_project import make_project, read_whole_space
from fermata.content.files.write_project import write_project
from fermata.content.media.project_presets import parse_media_presets
from fermata.content_api.request_parts import count_body, count_content_bytes, locate_space, make_author
from fermata.domain.errors import InvalidRequest
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import ProjectImport
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

MAX_FILES_PART_BYTES = 3_000_000
"""Of the texts of one response. Lambda answers with 6 MB, and JSON escapes make texts longer."""


def export_files(context: RequestContext) -> Response:
    """Respond with the files of a space that follow a cursor."""
    space, cursor = locate_space(context), context.request.query.get("cursor", "")
    files = format_project_files(make_project(read_whole_space(context.resources, space)))
    part, following = _cut_part(files, cursor)
    answer: dict[str, Any] = {"files": part, "digest": _digest(files)}
    return Response(200, answer | ({"nextCursor": following} if following else {}))


def _cut_part(files: FileTree, cursor: str) -> tuple[FileTree, str]:
    """Return files by path that come after a cursor, and the cursor of the next part; empty for none.

    A file that has no room in a part of its own comes in pieces. The cursor then has how many characters were sent.
    """
    begun, _, sent = cursor.partition("\n")
    start = int(sent) if sent.isdecimal() and len(sent) < 12 else 0
    part: FileTree = {}
    size, last = 0, ""
    for path in sorted(path for path in files if path > begun or (start and path == begun)):
        text = files[path][start if path == begun else 0 :]
        size += len(text.encode()) + len(path.encode())
        if size > MAX_FILES_PART_BYTES:
            return (part, last) if part else _cut_piece(path, text, start if path == begun else 0)
        part[path], last = text, path
    return part, ""


def _cut_piece(path: str, text: str, start: int) -> tuple[FileTree, str]:
    piece = text.encode()[:MAX_FILES_PART_BYTES].decode(errors="ignore")
    return {path: piece}, f"{path}\n{start + len(piece)}" if len(piece) < len(text) else path


def _digest(files: FileTree) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{len(files[path])}\0{files[path]}".encode())
    return digest.hexdigest()


def import_files(context: RequestContext) -> Response:
    """Make a space what files say."""
    body, space = context.parse_body(ProjectImport), locate_space(context)
    count_body(context)
    project = parse_project_files(_read_files(context, body))
    parse_media_presets(project.config)
    written = write_project(context.resources, space, project, make_author(context)._replace(source="import"))
    counts = {"written": written.written, "deleted": written.deleted, "models": written.models}
    return Response(200, {**counts, "ignored": list(project.ignored[:100])})


def _read_files(context: RequestContext, body: ProjectImport) -> FileTree:
    """Return the files that a request has or has uploaded before.

    Raises:
        InvalidRequest: It has both or neither, or the upload is no JSON object of texts.
    """
    if (body.files is None) == (body.upload_ref is None):
        raise InvalidRequest("Send either 'files' or 'uploadRef'.")
    if body.files is not None:
        return dict(to_storable_json(body.files))
    upload = uploads.parse_upload_ref(str(body.upload_ref), "snapshot")
    count_content_bytes(context, upload.size)
    try:
        found = json.loads(uploads.fetch_upload(context.resources, context.caller, upload))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise InvalidRequest("The upload must be a JSON object with the text of each file by its path.")
    return dict(to_storable_json(found))
