"""CSS, and the classes nodes have."""

from fermata.tools.site.definitions.shared_inputs import NonEmptyText
from fermata.tools.site.factories import CAN_EDIT_STYLE, browser_write
from fermata.tools.tool import ToolInput


class ApplyCssInput(ToolInput):
    css: NonEmptyText


class NodeClassInput(ToolInput):
    node_id: NonEmptyText
    class_id: NonEmptyText


_MERGE = {"operation": "merge"}
"""Editors from 0.0.11 on also replace and delete rules, and refuse a call that does not say which it is."""

STYLE_TOOLS = (
    browser_write(
        "applyCss",
        "Creates or changes style rules from plain CSS text with any selectors, @media and @keyframes included; a rule "
        "whose selector exists already is merged with it, property by property. Returns how many rules were created "
        "and updated.",
        ApplyCssInput,
        CAN_EDIT_STYLE,
        extra_browser_input=_MERGE,
    ),
    browser_write(
        "assignClass",
        "Gives a node a class that exists already; `classId` is its id or its name.",
        NodeClassInput,
        CAN_EDIT_STYLE,
    ),
    browser_write(
        "removeClass",
        "Takes a class (id or name) off a node; the class itself stays for the others that have it.",
        NodeClassInput,
        CAN_EDIT_STYLE,
    ),
)
