"""What several site tools take; the editor reads the same schemas."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.tool import ToolInput

NonEmptyText = Annotated[str, Field(min_length=1)]
ZeroBasedIndex = Annotated[int, Field(ge=0)]
PartNumber = Annotated[int, Field(ge=1)]


class PageRefInput(ToolInput):
    type: Literal["page"]
    id: NonEmptyText


class TemplateRefInput(ToolInput):
    type: Literal["template"]
    id: NonEmptyText


class VisualComponentRefInput(ToolInput):
    type: Literal["visualComponent"]
    id: NonEmptyText


DocumentRefInput = PageRefInput | TemplateRefInput | VisualComponentRefInput


class NodeIdInput(ToolInput):
    node_id: NonEmptyText


class PageIdInput(ToolInput):
    page_id: NonEmptyText
