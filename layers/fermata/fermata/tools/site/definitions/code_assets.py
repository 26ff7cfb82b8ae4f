"""Define the tools for scripts and stylesheets, which belong to the site and run beside its documents."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.tools.input_types import NonEmptyText, PartNumber
from fermata.tools.site.definitions.shared_inputs import DocumentRefInput
from fermata.tools.site.permissions import CAN_EDIT_STRUCTURE, CAN_READ_SITE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ToolInput

CodeAssetType = Literal["script", "style"]


class ListCodeAssetsInput(ToolInput):
    type: CodeAssetType | None = None


class ReadCodeAssetInput(ToolInput):
    file_id: NonEmptyText | None = None
    path: NonEmptyText | None = None
    part: PartNumber | None = None
    max_chars: Annotated[int, Field(ge=1, le=100_000)] | None = None


class WriteCodeAssetInput(ToolInput):
    path: NonEmptyText
    type: CodeAssetType
    content: str
    runtime: dict[str, Any] | None = None


class WriteCodeAssetWithDependenciesInput(WriteCodeAssetInput):
    dependencies: dict[str, NonEmptyText] | None = None


class CodeReplacementInput(ToolInput):
    old_text: NonEmptyText
    new_text: str
    replace_all: bool | None = None


class PatchCodeAssetInput(ToolInput):
    file_id: NonEmptyText | None = None
    path: NonEmptyText | None = None
    expected_hash: NonEmptyText
    replacements: Annotated[tuple[CodeReplacementInput, ...], Field(min_length=1)]


class InspectCodeRuntimeInput(ToolInput):
    document: DocumentRefInput | None = None


WRITE_CODE_ASSET_WITH_DEPENDENCIES = SITE_TOOL_FACTORY.browser_write(
    name="write_code_asset",
    description="Creates the script or stylesheet at `path`, or replaces all of its content; `runtime` says where and "
    "how it is loaded, and `dependencies` which npm packages a script imports, each with its version. This is the way "
    "to give a page behaviour, since scripts inside HTML are dropped.",
    input_model=WriteCodeAssetWithDependenciesInput,
    permissions=CAN_EDIT_STRUCTURE,
)

CODE_ASSET_TOOLS = (
    SITE_TOOL_FACTORY.browser_read(
        name="list_code_assets",
        description="Lists the site's scripts and stylesheets, or those of one `type`, with their ids, paths, sizes, "
        "hashes and where they are loaded.",
        input_model=ListCodeAssetsInput,
        permissions=CAN_READ_SITE,
    ),
    SITE_TOOL_FACTORY.browser_read(
        name="read_code_asset",
        description="Reads a script or stylesheet, named by `fileId` or `path`, in parts of `maxChars` characters "
        "(12,000 by default): follow pageInfo.nextPart until it is null. The hash it returns is that of the whole "
        "file.",
        input_model=ReadCodeAssetInput,
        permissions=CAN_READ_SITE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="write_code_asset",
        description="Creates the script or stylesheet at `path`, or replaces all of its content; `runtime` says where "
        "and how it is loaded. This is the way to give a page behaviour, since scripts inside HTML are dropped.",
        input_model=WriteCodeAssetInput,
        permissions=CAN_EDIT_STRUCTURE,
        members_of_other_generations=frozenset({"dependencies"}),
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="patch_code_asset",
        description="Replaces exact pieces of text in a script or stylesheet, named by `fileId` or `path`, if its "
        "content still has the `expectedHash` you read. Each `oldText` must occur exactly once, unless `replaceAll` "
        "is true.",
        input_model=PatchCodeAssetInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_read(
        name="inspect_code_runtime",
        description="Lists which scripts and stylesheets take effect on a page or template, by default on the one the "
        "user has open. Check with it after writing one.",
        input_model=InspectCodeRuntimeInput,
        permissions=CAN_READ_SITE,
    ),
)
