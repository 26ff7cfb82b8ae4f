"""Documents and the nodes they are made of: reading, building, changing."""

from typing import Annotated, Any

from pydantic import Field

from fermata.tools.site.definitions.shared_inputs import (
    DocumentRefInput,
    NodeIdInput,
    NonEmptyText,
    PartNumber,
    ZeroBasedIndex,
)
from fermata.tools.site.factories import CAN_EDIT_CONTENT, EVERYONE, browser_read, browser_write
from fermata.tools.tool import Risk, ToolInput


class InsertHtmlInput(ToolInput):
    parent_id: NonEmptyText
    index: ZeroBasedIndex | None = None
    html: NonEmptyText


class ReadDocumentInput(ToolInput):
    document: DocumentRefInput | None = None
    part: PartNumber | None = None


class OpenDocumentInput(ToolInput):
    document: DocumentRefInput


class ReplaceNodeHtmlInput(ToolInput):
    node_id: NonEmptyText
    html: NonEmptyText


class UpdateNodePropsInput(ToolInput):
    node_id: NonEmptyText
    breakpoint_id: NonEmptyText | None = None
    patch: dict[str, Any]


class MoveNodeInput(ToolInput):
    node_id: NonEmptyText
    new_parent_id: NonEmptyText
    new_index: ZeroBasedIndex


class RenameNodeInput(ToolInput):
    node_id: NonEmptyText
    label: NonEmptyText


class DuplicateNodeInput(ToolInput):
    node_id: NonEmptyText
    count: Annotated[int, Field(ge=1, le=50)] | None = None


NODE_TOOLS = (
    browser_write(
        "insertHtml",
        "Adds HTML inside the node `parentId`, at the 0-based `index` among its children or at the end: elements "
        "become editable nodes, a <style> element in the same HTML becomes style rules, scripts and event handlers "
        "are dropped. Returns the ids of the new nodes.",
        InsertHtmlInput,
    ),
    browser_read(
        "getNodeHtml",
        "Returns the exact HTML of one node with everything inside it, for a close look at a part before changing it.",
        NodeIdInput,
        EVERYONE,
        heavy=True,
    ),
    browser_read(
        "read_document",
        "Reads a page, template or visual component, by default the one the user has open, as HTML in which every "
        "element carries its node id as `uid`, with the CSS that applies to it. Long documents come in parts: ask "
        "again with `part` set to pageInfo.nextPart until that is null.",
        ReadDocumentInput,
        heavy=True,
    ),
    browser_read(
        "open_document",
        "Shows a page, template or visual component on the user's canvas, which must happen before a picture of it "
        "can be taken.",
        OpenDocumentInput,
    ),
    browser_write(
        "replaceNodeHtml",
        "Replaces everything inside a node by new HTML; what was there before is gone, so include whatever should "
        "stay. Returns the ids of the new nodes.",
        ReplaceNodeHtmlInput,
    ),
    browser_write(
        "deleteNode",
        "Removes a node with everything inside it.",
        NodeIdInput,
        risk=Risk.HIGH,
    ),
    browser_write(
        "updateNodeProps",
        "Sets single props of a node, such as a text, a link or an image source, and leaves its other props alone. "
        "With `breakpointId` the change counts for that breakpoint only, which works for props that are listed as "
        "breakpointOverridable.",
        UpdateNodePropsInput,
        CAN_EDIT_CONTENT,
    ),
    browser_write(
        "moveNode",
        "Moves a node with everything inside it to the 0-based place `newIndex` among the children of `newParentId`.",
        MoveNodeInput,
    ),
    browser_write(
        "renameNode",
        "Gives a node the name it has in the editor's layer list; visitors never see it.",
        RenameNodeInput,
        CAN_EDIT_CONTENT,
    ),
    browser_write(
        "duplicateNode",
        "Copies a node with everything inside it `count` times (1 to 50, once by default), right behind the original. "
        "Returns the ids of the copies.",
        DuplicateNodeInput,
    ),
)
