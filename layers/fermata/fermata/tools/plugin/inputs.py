"""What the plugin tools take; the editor reads the same schemas.

Where a file is named by `fileId` or `path`, the schema asks for neither: the editor refuses a call that names no file.
"""

from typing import Annotated

from pydantic import Field

from fermata.tools.site.inputs import Text
from fermata.tools.tool import ToolInput


class File(ToolInput):
    file_id: Text | None = None
    path: Text | None = None


class ReadFile(File):
    part: Annotated[int, Field(ge=1)] | None = None
    max_chars: Annotated[int, Field(ge=1, le=100_000)] | None = None


class WriteFile(ToolInput):
    path: Text
    content: str


class Replacement(ToolInput):
    old_text: Text
    new_text: str
    replace_all: bool | None = None


class PatchFile(File):
    expected_hash: Text
    replacements: Annotated[tuple[Replacement, ...], Field(min_length=1)]


class RenameFile(File):
    new_path: Text


class Plugin(ToolInput):
    local_id: Text | None = None
