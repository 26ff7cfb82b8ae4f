"""Define models of inputs that several site tools take. The editor reads the same schemas."""

from typing import Literal

from fermata.tools.input_types import NonEmptyText
from fermata.tools.tool import ToolInput


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
