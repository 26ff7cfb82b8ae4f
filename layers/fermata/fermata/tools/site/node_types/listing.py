"""What nodes are made of, as the model is told. The facts are in elements.py and form_parts.py."""

from typing import Any

from fermata.tools.site.node_types.definition import NodeType, PropControl
from fermata.tools.site.node_types.elements import ELEMENTS
from fermata.tools.site.node_types.form_elements import FORM_ELEMENTS

_TYPOGRAPHY = "Typography"
_WEIGHTS = {"400": "Regular", "500": "Medium", "600": "Semibold", "700": "Bold", "900": "Black"}
_SIDES = {"left": "Left", "center": "Centre", "right": "Right", "justify": "Justified"}
_STYLES: dict[str, PropControl] = {
    "fontFamily": ("text", "Font", "inherit"),
    "fontSize": ("text", "Size", "16px"),
    "fontWeight": ("select", "Weight", "400", _WEIGHTS),
    "lineHeight": ("text", "Line height", "1.4"),
    "letterSpacing": ("text", "Letter spacing", "0px"),
    "color": ("color", "Colour", "inherit"),
    "textAlign": ("select", "Alignment", "left", _SIDES),
    "marginBottom": ("text", "Space below", "0px"),
}
"""What is usually styled on text, by CSS property."""


def describe_node_types(category: str | None = None) -> list[dict[str, Any]]:
    """In the order of their ids; `category` in any case. One that does not exist has no modules."""
    wanted = (category or "").strip().casefold()
    return [
        _module(module_id, module)
        for module_id, module in sorted((ELEMENTS | FORM_ELEMENTS).items())
        if not wanted or module.category.casefold() == wanted
    ]


def _module(module_id: str, module: NodeType) -> dict[str, Any]:
    styles = _STYLES if module.category == _TYPOGRAPHY else {}
    return {
        "id": module_id,
        "name": module.name,
        "description": module.description,
        "category": module.category,
        "canHaveChildren": module.can_have_children,
        "defaults": {key: control[2] for key, control in module.props.items()} | module.unlisted,
        "props": [_control(key, control) for key, control in module.props.items()],
        "styles": [_control(key, control) | {"cssProperties": [key]} for key, control in styles.items()],
    }


def _control(key: str, control: PropControl) -> dict[str, Any]:
    kind, label, default, *choices = control
    told = {"key": key, "type": kind, "label": label, "defaultValue": default}
    options = [{"label": shown, "value": value} for values in choices for value, shown in values.items()]
    return {**told, "options": options} if choices else told
