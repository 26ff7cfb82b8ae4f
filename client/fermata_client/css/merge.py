"""Merge CSS rules into the style sheets of a page.

A rule is identified by its selector and the conditions around it (`@media`, `@supports`, …). An existing rule gets the
new declarations; any other rule is added at the end. The rest of the sheets keeps its bytes. Syntax that the grammar
does not know is added as it is, if its brackets are balanced.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fermata_client.css.declaration_edits import declaration_splices
from fermata_client.css.insertion import LEADING_AT_RULES, SheetFormat
from fermata_client.css.parser import CONDITIONAL_AT_RULES, CssRule, check_balanced, find_rule, parse_css
from fermata_client.css.sheet_draft import SheetDraft
from fermata_client.css.sheet_index import RulePath
from fermata_client.html.edit_error import EditError
from fermata_client.html.indentation import indent_at
from fermata_client.html.splices import Splice

REPEATABLE_AT_RULES = ("@font-face",)
KEYFRAMES_AT_RULES = ("@keyframes", "@-webkit-keyframes")
MAX_PARSED_BYTES = 10_000_000
"""How much may be parsed again because rules of one edit depend on each other. It takes a few seconds."""


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


class _OpenChanges:
    """Tell which rules depend on changes that are not applied yet (decision 0268)."""

    def __init__(self) -> None:
        self._added: set[RulePath] = set()
        self._added_to_groups: set[RulePath] = set()
        self._changed: set[RulePath] = set()
        self._are_leading: bool | None = None

    def affect(self, rule: CssRule, path: RulePath) -> bool:
        """Return whether the rule has to be put into the sheets as they are after these changes."""
        block = _innermost_block(path)
        return (
            self._are_leading not in (None, is_leading(rule))
            or (*block, rule.key) in (self._added if is_mergeable(rule) else self._added_to_groups)
            or any((*block, key) in self._added for key in path[len(block) :])
            or (*path, rule.key) in self._changed
        )

    def note_added(self, rule: CssRule, path: RulePath) -> None:
        block = _innermost_block(path)
        inner_places = [(*block, inner.key) for inner in rule.iter_descendants()]
        self._added.update(((*block, rule.key), *inner_places))
        self._added_to_groups.update(inner_places)
        if path:
            self._added_to_groups.add((*block, rule.key))
        self._are_leading = is_leading(rule)

    def note_changed(self, rule: CssRule, path: RulePath) -> None:
        self._changed.add((*path, rule.key))
        self._are_leading = False


def _innermost_block(path: RulePath) -> RulePath:
    """Return the path to the innermost rule that is no conditional group. Rules in different ones are independent."""
    length = len(path)
    while length and path[length - 1].startswith(CONDITIONAL_AT_RULES):
        length -= 1
    return path[:length]


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
        self._open_changes = _OpenChanges()
        self._drafts = [SheetDraft(sheet, own) for sheet, own in zip(self.sheets, self.formats, strict=True)]
        self._parsed_bytes = 0
        self._nested: list[tuple[CssRule, RulePath]] = []
        """Rules that are put into the blocks of others when those have their declarations."""

    def put_rules(self, css: str) -> RuleCounts:
        """Put rules into the sheets.

        Raises:
            EditError: the text has no rule, its brackets are not balanced, or its rules depend on each other too often.
        """
        check_balanced(css)
        rules = parse_css(css.replace("\r\n", "\n").encode())
        if not any(rule.key for rule in rules) and not any(rule.block_range for rule in rules):
            raise EditError("There is no CSS rule in this. Send rules like `.name { property: value }`.")
        self._nested = [(rule, ()) for rule in rules]
        while self._nested:
            following, self._nested = self._nested, []
            for rule, path in following:
                self._put_rule(rule, path)
            self._apply_changes()
        return self.counts

    def _apply_changes(self) -> None:
        self._open_changes = _OpenChanges()
        self._parsed_bytes += sum(draft.apply() for draft in self._drafts)
        self.sheets[:] = [draft.source for draft in self._drafts]
        if self._parsed_bytes > MAX_PARSED_BYTES:
            raise EditError(
                "The rules of this CSS depend on each other too often for one edit. Send each rule once with all it "
                "sets, or send them in several calls."
            )

    def _put_rule(self, rule: CssRule, path: RulePath) -> None:
        """Put a rule into the conditional groups whose keys are `path`, the outermost first."""
        if self._open_changes.affect(rule, path):
            self._apply_changes()
        existing = self._find_rule((*path, rule.key)) if is_mergeable(rule) else None
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

    def _find_rule(self, path: RulePath) -> _RuleLocation | None:
        """Find the rule that applies last. One of the site's own sheets is preferred."""
        locations = self._iter_locations(path)
        return next((own for own in locations if own.sheet_index not in self.vendor_indexes), None) or next(
            self._iter_locations(path), None
        )

    def _iter_locations(self, path: RulePath) -> Iterator[_RuleLocation]:
        for sheet_index in range(len(self.sheets) - 1, -1, -1):
            rule = self._drafts[sheet_index].index.find_rule(path)
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

    def _merge_rule(self, rule: CssRule, existing: _RuleLocation, path: RulePath) -> None:
        is_replaced = self.replace_existing or rule.key.startswith(KEYFRAMES_AT_RULES)
        if is_replaced:
            self._replace_rule(rule, existing, path)
        elif rule.is_opaque:
            self._add_rule(rule, path)
            self.counts.created -= rule.rule_count
        else:
            self._set_declarations(rule, existing, path)
        self.counts.updated += 1
        if not (is_replaced or rule.key.startswith("@") or rule.is_opaque):
            self._nested += [(inner, (*path, rule.key)) for inner in rule.rules]

    def _replace_rule(self, rule: CssRule, existing: _RuleLocation, path: RulePath) -> None:
        draft = self._drafts[existing.sheet_index]
        old = existing.rule
        source = rule.source.removeprefix(rule.leading_comments)
        text = draft.format.reindent(source, indent_at(draft.source, old.start))
        draft.change([Splice(old.start, old.end, text)])
        self._open_changes.note_changed(rule, path)

    def _set_declarations(self, rule: CssRule, existing: _RuleLocation, path: RulePath) -> None:
        draft = self._drafts[existing.sheet_index]
        own, unit, newline = existing.rule, draft.format.unit, draft.format.newline
        draft.change(declaration_splices(draft.source, own, rule.declarations, unit, newline))
        self._open_changes.note_changed(rule, path)

    def _add_rule(self, rule: CssRule, path: RulePath) -> None:
        """Add a rule at the end of its group, or where the cascade keeps its meaning."""
        self.counts.created += rule.rule_count
        target = self._drafts[self.target_index]
        if path:
            self._add_to_group(rule, path)
        elif is_leading(rule):
            target.add_leading(rule)
        elif location := self._find_first_group_with(rule.key):
            self._drafts[location.sheet_index].add_before_group(rule, location.rule)
        else:
            target.add_at_end(rule, None)
        self._open_changes.note_added(rule, path)

    def _add_to_group(self, rule: CssRule, path: RulePath) -> None:
        """Add a rule to a conditional group.

        If the unconditional rule comes after the group and would override it, the group is repeated after that rule.
        """
        group = self._find_rule(path)
        assert group is not None
        unconditional = self._find_rule((*path[:-1], rule.key))
        if unconditional is None or not group.rule.is_condition or unconditional.order < group.order:
            self._drafts[group.sheet_index].add_at_end(rule, group.rule)
            return
        outer = self._find_rule(path[:-1]) if len(path) > 1 else None
        draft = self._drafts[outer.sheet_index if outer else self.target_index]
        wrapped = self._wrap_in_group(rule, group, draft.format)
        draft.add_at_end(wrapped, outer.rule if outer else None)
        self._open_changes.note_added(wrapped, path[:-1])

    def _wrap_in_group(self, rule: CssRule, group: _RuleLocation, sheet_format: SheetFormat) -> CssRule:
        block_range = group.rule.block_range
        assert block_range is not None
        prelude = self._drafts[group.sheet_index].source[group.rule.start : block_range[0] - 1].strip()
        lines = sheet_format.reindent(rule.source, b"").splitlines()
        indented = [sheet_format.unit + line if line.strip() else line for line in lines]
        return replace(rule, source=b"\n".join([prelude + b" {", *indented, b"}"]), key=group.rule.key)

    def _find_first_group_with(self, key: str) -> _RuleLocation | None:
        """Find the first conditional group that changes the rule `key`, which must therefore come before it."""
        for sheet_index, draft in enumerate(self._drafts):
            if sheet_index in self.vendor_indexes and self.target_index not in self.vendor_indexes:
                continue
            if group := draft.index.find_group_with(key):
                return _RuleLocation(sheet_index, group)
        return None


def is_mergeable(rule: CssRule) -> bool:
    """Return whether an equal rule is changed instead of adding this one."""
    return bool(rule.key) and not rule.key.startswith(REPEATABLE_AT_RULES)


def is_leading(rule: CssRule) -> bool:
    return rule.key.startswith(LEADING_AT_RULES)
