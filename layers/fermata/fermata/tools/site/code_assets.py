"""Scripts and stylesheets of the site, which run beside the documents."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.tools.site.inputs import Document, Part, Text
from fermata.tools.site.records import browser_read, browser_write
from fermata.tools.tool import ToolInput

Kind = Literal["script", "style"]


class ListCodeAssets(ToolInput):
    type: Kind | None = None


class ReadCodeAsset(ToolInput):
    file_id: Text | None = None
    path: Text | None = None
    part: Part | None = None
    max_chars: Annotated[int, Field(ge=1, le=100_000)] | None = None


class WriteCodeAsset(ToolInput):
    path: Text
    type: Kind
    content: str
    runtime: dict[str, Any] | None = None


class Replacement(ToolInput):
    old_text: Text
    new_text: str
    replace_all: bool | None = None


class PatchCodeAsset(ToolInput):
    file_id: Text | None = None
    path: Text | None = None
    expected_hash: Text
    replacements: Annotated[tuple[Replacement, ...], Field(min_length=1)]


class InspectCodeRuntime(ToolInput):
    document: Document | None = None


CODE_ASSETS = (
    browser_read(
        "list_code_assets",
        "Lists the site's scripts and stylesheets, or those of one `type`, with their ids, paths, sizes, hashes and "
        "where they are loaded.",
        ListCodeAssets,
    ),
    browser_read(
        "read_code_asset",
        "Reads a script or stylesheet, named by `fileId` or `path`, in parts of `maxChars` characters (12,000 by "
        "default): follow pageInfo.nextPart until it is null. The hash it returns is that of the whole file.",
        ReadCodeAsset,
    ),
    browser_write(
        "write_code_asset",
        "Creates the script or stylesheet at `path`, or replaces all of its content; `runtime` says where and how it "
        "is loaded. This is the way to give a page behaviour, since scripts inside HTML are dropped.",
        WriteCodeAsset,
    ),
    browser_write(
        "patch_code_asset",
        "Replaces exact pieces of text in a script or stylesheet, named by `fileId` or `path`, if its content still "
        "has the `expectedHash` you read. Each `oldText` must occur exactly once, unless `replaceAll` is true.",
        PatchCodeAsset,
    ),
    browser_read(
        "inspect_code_runtime",
        "Tells which scripts and stylesheets take effect on a page or template, by default on the one the user has "
        "open; check with it after writing one.",
        InspectCodeRuntime,
    ),
)
