"""Define the tools that read documents, and insert, change, move and delete their nodes."""

from typing import Annotated, Any

from pydantic import Field

from fermata.tools.input_types import NonEmptyText, PartNumber, ZeroBasedIndex
from fermata.tools.site.definitions.shared_inputs import DocumentRefInput, NodeIdInput
from fermata.tools.site.permissions import CAN_EDIT_CONTENT, CAN_EDIT_STRUCTURE, CAN_READ_SITE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ResultPolicy, Risk, ToolInput
from fermata.tools.tool_factory import EVERYONE


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
    SITE_TOOL_FACTORY.browser_write(
        name="insertHtml",
        description="Adds HTML inside the node `parentId`, at the 0-based `index` among its children or at the end. "
        "Elements become editable nodes, and a <style> element becomes style rules. Scripts and event handlers are "
        "dropped. Returns the ids of the new nodes.",
        input_model=InsertHtmlInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_read(
        name="getNodeHtml",
        description="Returns the exact HTML of one node with everything inside it, for a close look at a part before "
        "changing it.",
        input_model=NodeIdInput,
        permissions=EVERYONE,
        result_policy=ResultPolicy(heavy=True),
    ),
    SITE_TOOL_FACTORY.browser_read(
        name="read_document",
        description="Reads a page, template or visual component as HTML, with the CSS that applies to it. By default "
        "it reads the one the user has open. Every element carries its node id as `uid`. Long documents come in parts: "
        "ask again with `part` set to pageInfo.nextPart until that is null.",
        input_model=ReadDocumentInput,
        permissions=CAN_READ_SITE,
        result_policy=ResultPolicy(heavy=True),
    ),
    SITE_TOOL_FACTORY.browser_read(
        name="open_document",
        description="Shows a page, template or visual component on the user's canvas, which must happen before a "
        "picture of it can be taken.",
        input_model=OpenDocumentInput,
        permissions=CAN_READ_SITE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="replaceNodeHtml",
        description="Replaces everything inside a node by new HTML; what was there before is gone, so include "
        "everything that should stay. Returns the ids of the new nodes.",
        input_model=ReplaceNodeHtmlInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="deleteNode",
        description="Removes a node with everything inside it.",
        input_model=NodeIdInput,
        permissions=CAN_EDIT_STRUCTURE,
        risk=Risk.HIGH,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="updateNodeProps",
        description="Sets single props of a node, such as a text, a link or an image source, and leaves its other "
        "props alone. With `breakpointId` the change counts for that breakpoint only, which works for props that are "
        "listed as breakpointOverridable.",
        input_model=UpdateNodePropsInput,
        permissions=CAN_EDIT_CONTENT,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="moveNode",
        description="Moves a node with everything inside it to the 0-based place `newIndex` among the children of "
        "`newParentId`.",
        input_model=MoveNodeInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="renameNode",
        description="Gives a node the name it has in the editor's layer list; visitors never see it.",
        input_model=RenameNodeInput,
        permissions=CAN_EDIT_CONTENT,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="duplicateNode",
        description="Copies a node with everything inside it `count` times (1 to 50, once by default), right behind "
        "the original. Returns the ids of the copies.",
        input_model=DuplicateNodeInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
)
