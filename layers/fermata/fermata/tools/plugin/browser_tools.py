"""Define the plugin tools that the editor in the browser runs on the files of the open plugin."""

from typing import Annotated

from pydantic import Field

from fermata.tools.input_types import NonEmptyText, PartNumber
from fermata.tools.plugin.permissions import CAN_EDIT_PLUGINS, CAN_READ_PLUGINS
from fermata.tools.plugin.tool_factory import PLUGIN_TOOL_FACTORY
from fermata.tools.tool import Risk, ToolInput
from fermata.tools.tool_factory import EVERYONE


class FileInput(ToolInput):
    file_id: NonEmptyText | None = None
    path: NonEmptyText | None = None


class ReadFileInput(FileInput):
    part: PartNumber | None = None
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


PLUGIN_BROWSER_TOOLS = (
    PLUGIN_TOOL_FACTORY.browser_read(
        name="plugin_list_files",
        description="Lists the files of the plugin the user has open, with id, path, size and hash, as they are in "
        "the editor.",
        permissions=CAN_READ_PLUGINS,
    ),
    PLUGIN_TOOL_FACTORY.browser_read(
        name="plugin_read_file",
        description="Reads a file of the open plugin by `fileId` or `path`, long ones in parts (`part`, `maxChars`). "
        "It returns the hash of the whole file, which a patch has to name.",
        input_model=ReadFileInput,
        permissions=CAN_READ_PLUGINS,
    ),
    PLUGIN_TOOL_FACTORY.browser_write(
        name="plugin_write_file",
        description="Creates a file of the open plugin or replaces all of its content; for a small change to a long "
        "file, patch it instead.",
        input_model=WriteFileInput,
        permissions=CAN_EDIT_PLUGINS,
    ),
    PLUGIN_TOOL_FACTORY.browser_write(
        name="plugin_patch_file",
        description="Replaces exact pieces of text in a file of the open plugin, if its content still has the "
        "`expectedHash` you read. Each `oldText` must occur exactly once, unless `replaceAll` is true.",
        input_model=PatchFileInput,
        permissions=CAN_EDIT_PLUGINS,
    ),
    PLUGIN_TOOL_FACTORY.browser_write(
        name="plugin_rename_file",
        description="Gives a file of the open plugin another path; references to it in other files stay as they are.",
        input_model=RenameFileInput,
        permissions=CAN_EDIT_PLUGINS,
    ),
    PLUGIN_TOOL_FACTORY.browser_write(
        name="plugin_delete_file",
        description="Deletes a file of the open plugin, which can never be its plugin.json.",
        input_model=FileInput,
        permissions=CAN_EDIT_PLUGINS,
        risk=Risk.HIGH,
    ),
    PLUGIN_TOOL_FACTORY.browser_write(
        name="plugin_open_file",
        description="Shows a file of the open plugin in the user's editor without changing it.",
        input_model=FileInput,
        permissions=EVERYONE,
        risk=Risk.SAFE,
    ),
)
