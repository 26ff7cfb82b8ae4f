"""One kind of node."""

from dataclasses import dataclass, field
from typing import Any

PropControl = tuple[Any, ...]
"""A prop: (type, label, default) or, for a select, (type, label, default, {value: label})."""
DISABLED_CONTROL: PropControl = ("toggle", "Disabled", False)


@dataclass(frozen=True, kw_only=True)
class NodeType:
    name: str
    category: str
    description: str
    props: dict[str, PropControl] = field(default_factory=dict)
    can_have_children: bool = False
    unlisted: dict[str, Any] = field(default_factory=dict)
    """Defaults of what a node has besides: the editor shows no control for it."""
