"""CSS, and the classes nodes have."""

from fermata.tools.site.inputs import Text
from fermata.tools.site.records import STYLE, browser_write
from fermata.tools.tool import ToolInput


class ApplyCss(ToolInput):
    css: Text


class NodeClass(ToolInput):
    node_id: Text
    class_id: Text


STYLES = (
    browser_write(
        "applyCss",
        "Creates or changes style rules from plain CSS text with any selectors, @media and @keyframes included; a rule "
        "whose selector exists already is merged with it, property by property. Returns how many rules were created "
        "and updated.",
        ApplyCss,
        STYLE,
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
