"""What the site tools take; the editor reads the same schemas."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.tool import ToolInput

Text = Annotated[str, Field(min_length=1)]


class PageRef(ToolInput):
    type: Literal["page"]
    id: Text


class TemplateRef(ToolInput):
    type: Literal["template"]
    id: Text


class VisualComponentRef(ToolInput):
    type: Literal["visualComponent"]
    id: Text


class ListTokens(ToolInput):
    family: Literal["colors", "typography", "spacing", "fonts"] | None = None


class ReadDocument(ToolInput):
    document: PageRef | TemplateRef | VisualComponentRef | None = None
    part: Annotated[int, Field(ge=1)] | None = None


class InsertHtml(ToolInput):
    parent_id: Text
    index: Annotated[int, Field(ge=0)] | None = None
    html: Text


class NodeOnly(ToolInput):
    node_id: Text


class ReplaceNodeHtml(ToolInput):
    node_id: Text
    html: Text


class ApplyCss(ToolInput):
    css: Text
