"""Collect the changes of an edit to a style sheet, and apply them together (decision 0268)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fermata_client.css.insertion import SheetFormat, find_gap, splice_at_end, splice_before_group, splice_leading
from fermata_client.css.parser import CssRule
from fermata_client.css.sheet_index import SheetIndex
from fermata_client.html.splices import Splice, apply_splices


@dataclass
class SheetDraft:
    """A style sheet, and changes of it. All positions are those of `source`, until the changes are applied."""

    source: bytes
    format: SheetFormat
    _index: SheetIndex | None = None
    _gap: bytes | None = None
    """Between the rules of `source`, found once for all rules that are added."""
    _splices: list[Splice] = field(default_factory=list)
    _leading: list[CssRule] = field(default_factory=list)
    _added_by_group: dict[int, tuple[CssRule | None, list[CssRule]]] = field(default_factory=dict)
    """Rules for the end of each group, by the group's start; those for the end of the sheet at -1."""

    @property
    def index(self) -> SheetIndex:
        if self._index is None:
            self._index = SheetIndex(self.source)
        return self._index

    def change(self, splices: Sequence[Splice]) -> None:
        self._splices += splices

    def add_before_group(self, rule: CssRule, group: CssRule) -> None:
        """Add a rule before a conditional group and its comments."""
        if self._gap is None:
            self._gap = find_gap(self.source, self.index.rules, self.format)
        self._splices.append(splice_before_group(self.source, rule, group, self._gap, self.format))

    def add_at_end(self, rule: CssRule, group: CssRule | None) -> None:
        """Add a rule at the end of a conditional group; None for the end of the sheet."""
        start = -1 if group is None else group.start
        self._added_by_group.setdefault(start, (group, []))[1].append(rule)

    def add_leading(self, rule: CssRule) -> None:
        """Add a statement that is valid only before all rules."""
        self._leading.append(rule)

    def apply(self) -> int:
        """Apply the changes, and return how many bytes have to be parsed again."""
        rules = self.index.rules
        splices = [
            *self._splices,
            *([splice_leading(self.source, rules, self._leading, self.format)] if self._leading else []),
            *(
                splice
                for group, added in self._added_by_group.values()
                for splice in self._splices_at_end(group, added)
            ),
        ]
        if not splices:
            return 0
        self.source = apply_splices(self.source, splices)
        self._index = self._gap = None
        self._splices, self._leading, self._added_by_group = [], [], {}
        return len(self.source)

    def _splices_at_end(self, group: CssRule | None, added: list[CssRule]) -> Iterator[Splice]:
        last = group.declarations[-1] if group and group.declarations else None
        if last and self.source[last.end - 1 : last.end] != b";":
            yield Splice(last.end, last.end, b";")
        yield splice_at_end(self.source, self.index.rules, added, group, self.format)
