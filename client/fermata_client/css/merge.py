"""Merge CSS rules into the style sheets of a page.

A rule is identified by its selector and the conditions around it (`@media`, `@supports`, …). An existing rule gets the
new declarations; any other rule is added at the end. The rest of the sheets keeps its bytes. Syntax that the grammar
does not know is added as it is, if its brackets are balanced.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from fermata_client.css.declaration_edits import declaration_splices
from fermata_client.css.insertion import (
    LEADING_AT_RULES,
    SheetFormat,
    splice_at_end,
    splice_before_group,
    splice_leading,
)
from fermata_client.css.parser import CssRule, check_balanced, find_rule, parse_css
from fermata_client.html.edit_error import EditError
from fermata_client.html.indentation import indent_at
from fermata_client.html.splices import Splice, apply_splices

REPEATABLE_AT_RULES = ("@font-face",)
KEYFRAMES_AT_RULES = ("@keyframes", "@-webkit-keyframes")


@dataclass
class RuleCounts:
    created: int = 0
    updated: int = 0
    kept: int = 0
    """Existing rules that were left unchanged."""


@dataclass(frozen=True)
class _RuleLocation:
    sheet_index: int
    rule: CssRule

    @property
    def order(self) -> tuple[int, int]:
        """Order in which rules apply."""
        return self.sheet_index, self.rule.start


class _KnownKeys:
    """Tell which rules are new wherever they are put, so that many are added at once (decision 0236)."""

    def __init__(self, sheets: Iterable[bytes]) -> None:
        self._keys: set[str] = set()
        self._keys_in_groups: set[str] = set()
        for sheet in sheets:
            for rule in parse_css(sheet):
                self._add(rule)

    def take(self, rule: CssRule) -> bool:
        """Return whether the rule belongs at the end of the sheet that gets new ones. It is known from then on."""
        is_mergeable = rule.key and not rule.key.startswith(REPEATABLE_AT_RULES)
        is_new = not (
            rule.key in self._keys_in_groups
            or rule.key.startswith(LEADING_AT_RULES)
            or (is_mergeable and rule.key in self._keys)
        )
        self._add(rule)
        return is_new

    def _add(self, rule: CssRule) -> None:
        self._keys.add(rule.key)
        if rule.is_condition:
            self._keys_in_groups.update(inner.key for inner in rule.iter_descendants())


@dataclass
class StyleSheetEditor:
    """The style sheets of a page, in the order in which they apply."""

    sheets: list[bytes]
    formats: list[SheetFormat]
    target_index: int = -1
    """The sheet that gets new rules."""
    keep_existing: bool = False
    """Leave existing rules as they are."""
    replace_existing: bool = False
    """Replace existing rules as a whole, instead of setting their declarations."""
    vendor_indexes: frozenset[int] = frozenset()
    """Sheets of libraries. Rules are added to them only if there is no other sheet."""
    counts: RuleCounts = field(default_factory=RuleCounts)

    def __post_init__(self) -> None:
        self.target_index %= len(self.sheets)

    def put_rules(self, css: str) -> RuleCounts:
        """Put rules into the sheets.

        Raises:
            EditError: the text has no rule, or its brackets are not balanced.
        """
        check_balanced(css)
        rules = parse_css(css.replace("\r\n", "\n").encode())
        if not any(rule.key for rule in rules) and not any(rule.block_range for rule in rules):
            raise EditError("There is no CSS rule in this. Send rules like `.name { property: value }`.")
        known = _KnownKeys(self.sheets)
        for is_new, following in groupby(rules, known.take):
            if is_new:
                self._add_new_rules(list(following))
            else:
                for rule in following:
                    self._put_rule(rule, ())
        return self.counts

    def _add_new_rules(self, rules: Sequence[CssRule]) -> None:
        self.counts.created += sum(rule.rule_count for rule in rules)
        self._add_at_end(self.target_index, rules, None)

    def _put_rule(self, rule: CssRule, path: tuple[str, ...]) -> None:
        """Put a rule into the conditional groups whose keys are `path`, the outermost first."""
        is_mergeable = rule.key and not rule.key.startswith(REPEATABLE_AT_RULES)
        existing = self._find_rule((*path, rule.key)) if is_mergeable else None
        if existing is not None and self._is_better_overridden(rule, existing):
            existing = None
        if existing is None:
            self._add_rule(rule, path)
        elif rule.block_range is None:
            self.counts.kept += 1
        elif rule.is_condition:
            for inner in rule.rules:
                self._put_rule(inner, (*path, rule.key))
        elif self.keep_existing:
            self.counts.kept += 1
        else:
            self._merge_rule(rule, existing, path)

    def _find_rule(self, path: tuple[str, ...]) -> _RuleLocation | None:
        """Find the rule that applies last. One of the site's own sheets is preferred."""
        locations = self._iter_locations(path)
        return next((own for own in locations if own.sheet_index not in self.vendor_indexes), None) or next(
            self._iter_locations(path), None
        )

    def _iter_locations(self, path: tuple[str, ...]) -> Iterator[_RuleLocation]:
        for sheet_index in range(len(self.sheets) - 1, -1, -1):
            rule = find_rule(parse_css(self.sheets[sheet_index]), path)
            if rule is not None:
                yield _RuleLocation(sheet_index, rule)

    def _is_better_overridden(self, rule: CssRule, existing: _RuleLocation) -> bool:
        """Return whether a library's rule is left as it is, because a rule in the site's own sheet can do instead."""
        if existing.sheet_index not in self.vendor_indexes or self.target_index in self.vendor_indexes:
            return False
        if rule.is_condition and not any(find_rule(existing.rule.rules, (inner.key,)) for inner in rule.rules):
            return True
        is_changed_in_place = self.keep_existing or self.replace_existing or existing.rule.block_range is None
        return not is_changed_in_place and self.target_index > existing.sheet_index

    def _merge_rule(self, rule: CssRule, existing: _RuleLocation, path: tuple[str, ...]) -> None:
        is_replaced = self.replace_existing or rule.key.startswith(KEYFRAMES_AT_RULES)
        if is_replaced:
            self._replace_rule(rule, existing)
        elif rule.is_opaque:
            self._add_rule(rule, path)
            self.counts.created -= rule.rule_count
        else:
            self._set_declarations(rule, existing)
        self.counts.updated += 1
        if not (is_replaced or rule.key.startswith("@") or rule.is_opaque):
            for inner in rule.rules:
                self._put_rule(inner, (*path, rule.key))

    def _replace_rule(self, rule: CssRule, existing: _RuleLocation) -> None:
        sheet = self.sheets[existing.sheet_index]
        old = existing.rule
        source = rule.source.removeprefix(rule.leading_comments)
        text = self.formats[existing.sheet_index].reindent(source, indent_at(sheet, old.start))
        self._splice(existing.sheet_index, Splice(old.start, old.end, text))

    def _set_declarations(self, rule: CssRule, existing: _RuleLocation) -> None:
        sheet = self.sheets[existing.sheet_index]
        sheet_format = self.formats[existing.sheet_index]
        splices = declaration_splices(sheet, existing.rule, rule.declarations, sheet_format.unit, sheet_format.newline)
        self._splice(existing.sheet_index, *splices)

    def _add_rule(self, rule: CssRule, path: tuple[str, ...]) -> None:
        """Add a rule at the end of its group, or where the cascade keeps its meaning."""
        self.counts.created += rule.rule_count
        target = self.target_index
        if path:
            self._add_to_group(rule, path)
        elif rule.key.startswith(LEADING_AT_RULES):
            self._splice(target, splice_leading(self.sheets[target], rule, self.formats[target]))
        elif location := self._find_first_group_with(rule.key):
            index = location.sheet_index
            splice = splice_before_group(self.sheets[index], rule, location.rule, self.formats[index])
            self._splice(index, splice)
        else:
            self._add_at_end(target, [rule], None)

    def _add_to_group(self, rule: CssRule, path: tuple[str, ...]) -> None:
        """Add a rule to a conditional group.

        If the unconditional rule comes after the group and would override it, the group is repeated after that rule.
        """
        group = self._find_rule(path)
        assert group is not None
        unconditional = self._find_rule((*path[:-1], rule.key))
        if unconditional is None or not group.rule.is_condition or unconditional.order < group.order:
            self._add_at_end(group.sheet_index, [rule], group.rule)
            return
        outer = self._find_rule(path[:-1]) if len(path) > 1 else None
        sheet_index = outer.sheet_index if outer else self.target_index
        wrapped = self._wrap_in_group(rule, group, self.formats[sheet_index])
        self._add_at_end(sheet_index, [wrapped], outer.rule if outer else None)

    def _wrap_in_group(self, rule: CssRule, group: _RuleLocation, sheet_format: SheetFormat) -> CssRule:
        block_range = group.rule.block_range
        assert block_range is not None
        prelude = self.sheets[group.sheet_index][group.rule.start : block_range[0] - 1].strip()
        lines = sheet_format.reindent(rule.source, b"").splitlines()
        indented = [sheet_format.unit + line if line.strip() else line for line in lines]
        return replace(rule, source=b"\n".join([prelude + b" {", *indented, b"}"]), key=group.rule.key)

    def _find_first_group_with(self, key: str) -> _RuleLocation | None:
        """Find the first conditional group that changes the rule `key`, which must therefore come before it."""
        for sheet_index, sheet in enumerate(self.sheets):
            if sheet_index in self.vendor_indexes and self.target_index not in self.vendor_indexes:
                continue
            for group in parse_css(sheet):
                if group.is_condition and any(inner.key == key for inner in group.iter_descendants()):
                    return _RuleLocation(sheet_index, group)
        return None

    def _add_at_end(self, sheet_index: int, rules: Sequence[CssRule], group: CssRule | None) -> None:
        splice = splice_at_end(self.sheets[sheet_index], rules, group, self.formats[sheet_index])
        self._splice(sheet_index, splice)

    def _splice(self, sheet_index: int, *splices: Splice) -> None:
        self.sheets[sheet_index] = apply_splices(self.sheets[sheet_index], splices)
