"""What several site tools take; the editor reads the same schemas."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.tool import ToolInput

Text = Annotated[str, Field(min_length=1)]
Place = Annotated[int, Field(ge=0)]
Part = Annotated[int, Field(ge=1)]


class PageRef(ToolInput):
    type: Literal["page"]
    id: Text


class TemplateRef(ToolInput):
    type: Literal["template"]
    id: Text


class VisualComponentRef(ToolInput):
    type: Literal["visualComponent"]
    id: Text


Document = PageRef | TemplateRef | VisualComponentRef


class NodeOnly(ToolInput):
    node_id: Text


class PageOnly(ToolInput):
    page_id: Text
