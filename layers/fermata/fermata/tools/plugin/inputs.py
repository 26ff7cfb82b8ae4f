"""What the plugin tools take; the editor reads the same schemas.

Where a file is named by `fileId` or `path`, the schema asks for neither: the editor refuses a call that names no file.
"""

from typing import Annotated

from pydantic import Field

from fermata.tools.site.definitions.shared_inputs import NonEmptyText
from fermata.tools.tool import ToolInput


class FileInput(ToolInput):
    file_id: NonEmptyText | None = None
    path: NonEmptyText | None = None


class ReadFileInput(FileInput):
    part: Annotated[int, Field(ge=1)] | None = None
    max_chars: Annotated[int, Field(ge=1, le=100_000)] | None = None


class WriteFileInput(ToolInput):
    path: NonEmptyText
    content: str


class FileReplacementInput(ToolInput):
    old_text: NonEmptyText
    new_text: str
    replace_all: bool | None = None


class PatchFileInput(FileInput):
    expected_hash: NonEmptyText
    replacements: Annotated[tuple[FileReplacementInput, ...], Field(min_length=1)]


class RenameFileInput(FileInput):
    new_path: NonEmptyText


class PluginInput(ToolInput):
    local_id: NonEmptyText | None = None
