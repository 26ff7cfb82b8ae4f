"""CSS, and the classes nodes have."""

from fermata.tools.site.inputs import Text
from fermata.tools.site.records import STYLE, browser_write
from fermata.tools.tool import ToolInput


class ApplyCss(ToolInput):
    css: Text


class NodeClass(ToolInput):
    node_id: Text
    class_id: Text


_MERGE = {"operation": "merge"}
"""Editors from 0.0.11 on also replace and delete rules, and refuse a call that does not say which it is."""

STYLES = (
    browser_write(
        "applyCss",
        "Creates or changes style rules from plain CSS text with any selectors, @media and @keyframes included; a rule "
        "whose selector exists already is merged with it, property by property. Returns how many rules were created "
        "and updated.",
        ApplyCss,
        STYLE,
        sent_along=_MERGE,
    ),
    browser_write(
        "assignClass",
        "Gives a node a class that exists already; `classId` is its id or its name.",
        NodeClass,
        STYLE,
    ),
    browser_write(
        "removeClass",
        "Takes a class (id or name) off a node; the class itself stays for the others that have it.",
        NodeClass,
        STYLE,
    ),
)
