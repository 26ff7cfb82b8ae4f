"""Find the rules of a parsed style sheet by their place, each in one step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fermata_client.css.parser import CssRule, parse_css

RulePath = tuple[str, ...]
"""Keys of the rules around a rule, the outermost first, and its own."""


@dataclass(slots=True)
class _Place:
    rule: CssRule | None = None
    """The last rule here: in CSS a later rule wins."""
    inner: dict[str, "_Place"] = field(default_factory=dict)
    """The places in all rules here, by key."""


class SheetIndex:
    """The rules of a style sheet as it was parsed."""

    def __init__(self, source: bytes) -> None:
        self.rules = parse_css(source)
        self._root = _Place()
        self._first_group_by_key: dict[str, CssRule] = {}
        _add_places(self._root, self.rules)
        for group in self.rules:
            if group.is_condition:
                for inner in group.iter_descendants():
                    self._first_group_by_key.setdefault(inner.key, group)

    def find_rule(self, path: RulePath) -> CssRule | None:
        """Return the last rule at a path."""
        place = self._root
        for key in path:
            if key not in place.inner:
                return None
            place = place.inner[key]
        return place.rule

    def find_group_with(self, key: str) -> CssRule | None:
        """Return the first conditional group that contains a rule `key`."""
        return self._first_group_by_key.get(key)


def _add_places(place: _Place, rules: Sequence[CssRule]) -> None:
    for rule in rules:
        own = place.inner.setdefault(rule.key, _Place())
        own.rule = rule
        _add_places(own, rule.rules)
