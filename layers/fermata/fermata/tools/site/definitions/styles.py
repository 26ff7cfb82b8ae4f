"""Define the tools for style rules, and for the classes of nodes."""

from fermata.tools.input_types import NonEmptyText
from fermata.tools.site.permissions import CAN_EDIT_STYLE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ToolInput


class ApplyCssInput(ToolInput):
    css: NonEmptyText


class NodeClassInput(ToolInput):
    node_id: NonEmptyText
    class_id: NonEmptyText


_MERGE_OPERATION = {"operation": "merge"}
"""Editors from 0.0.11 on also replace and delete rules, and refuse a call without an operation (decision 0102)."""

STYLE_TOOLS = (
    SITE_TOOL_FACTORY.browser_write(
        name="applyCss",
        description="Creates or changes style rules from plain CSS text with any selectors, @media and @keyframes "
        "included; a rule whose selector exists already is merged with it, property by property. Returns how many "
        "rules were created and updated.",
        input_model=ApplyCssInput,
        permissions=CAN_EDIT_STYLE,
        extra_browser_input=_MERGE_OPERATION,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="assignClass",
        description="Gives a node a class that exists already; `classId` is its id or its name.",
        input_model=NodeClassInput,
        permissions=CAN_EDIT_STYLE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="removeClass",
        description="Takes a class (id or name) off a node; the class itself stays for the others that have it.",
        input_model=NodeClassInput,
        permissions=CAN_EDIT_STYLE,
    ),
)
