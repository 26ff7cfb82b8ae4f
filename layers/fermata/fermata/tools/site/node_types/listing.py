"""Describe the node types to the model. The data is in elements.py and form_elements.py."""

from typing import Any

from fermata.tools.site.node_types.definition import NodeType, PropControl
from fermata.tools.site.node_types.elements import ELEMENTS
from fermata.tools.site.node_types.form_elements import FORM_ELEMENTS

_TYPOGRAPHY = "Typography"
_WEIGHTS = {"400": "Regular", "500": "Medium", "600": "Semibold", "700": "Bold", "900": "Black"}
_ALIGNMENTS = {"left": "Left", "center": "Centre", "right": "Right", "justify": "Justified"}
_TEXT_STYLES: dict[str, PropControl] = {
    "fontFamily": ("text", "Font", "inherit"),
    "fontSize": ("text", "Size", "16px"),
    "fontWeight": ("select", "Weight", "400", _WEIGHTS),
    "lineHeight": ("text", "Line height", "1.4"),
    "letterSpacing": ("text", "Letter spacing", "0px"),
    "color": ("color", "Colour", "inherit"),
    "textAlign": ("select", "Alignment", "left", _ALIGNMENTS),
    "marginBottom": ("text", "Space below", "0px"),
}
"""Controls of the CSS properties that are usually set on text."""


def describe_node_types(category: str | None = None) -> list[dict[str, Any]]:
    """Describe the node types of a category (upper or lower case), or all of them, in the order of their ids."""
    wanted_category = (category or "").strip().casefold()
    return [
        _describe_node_type(type_id, node_type)
        for type_id, node_type in sorted((ELEMENTS | FORM_ELEMENTS).items())
        if not wanted_category or node_type.category.casefold() == wanted_category
    ]


def _describe_node_type(type_id: str, node_type: NodeType) -> dict[str, Any]:
    styles = _TEXT_STYLES if node_type.category == _TYPOGRAPHY else {}
    return {
        "id": type_id,
        "name": node_type.name,
        "description": node_type.description,
        "category": node_type.category,
        "canHaveChildren": node_type.can_have_children,
        "defaults": {key: control[2] for key, control in node_type.props.items()} | node_type.unlisted,
        "props": [_describe_control(key, control) for key, control in node_type.props.items()],
        "styles": [_describe_control(key, control) | {"cssProperties": [key]} for key, control in styles.items()],
    }


def _describe_control(key: str, control: PropControl) -> dict[str, Any]:
    kind, label, default, *choices = control
    description = {"key": key, "type": kind, "label": label, "defaultValue": default}
    options = [{"label": shown, "value": value} for labels in choices for value, shown in labels.items()]
    return {**description, "options": options} if choices else description
