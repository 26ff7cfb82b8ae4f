"""One kind of node."""

from dataclasses import dataclass, field
from typing import Any

Control = tuple[Any, ...]
"""A prop: (type, label, default) or, for a select, (type, label, default, {value: label})."""
DISABLED: Control = ("toggle", "Disabled", False)


@dataclass(frozen=True, kw_only=True)
class Module:
    name: str
    category: str
    description: str
    props: dict[str, Control] = field(default_factory=dict)
    can_have_children: bool = False
    unlisted: dict[str, Any] = field(default_factory=dict)
    """Defaults of what a node has besides: the editor shows no control for it."""
