"""Define a node type: what the editor calls a module."""

from dataclasses import field
from typing import Any

from fermata.domain.value_dataclass import value_dataclass

PropControl = tuple[Any, ...]
"""The control of one prop: (type, label, default) or, for a select, (type, label, default, {value: label})."""
DISABLED_CONTROL: PropControl = ("toggle", "Disabled", False)


@value_dataclass(frozen=True, kw_only=True)
class NodeType:
    """One type of node, with its props and their defaults."""

    name: str
    category: str
    description: str
    props: dict[str, PropControl] = field(default_factory=dict)
    can_have_children: bool = False
    unlisted: dict[str, Any] = field(default_factory=dict)
    """Defaults of members for which the editor shows no control."""
