"""CSS by source positions: put rules into a style sheet, merging with the rules that are already there.

A rule is found by its selector and the conditions around it (`@media`, `@supports`, …). What is found gets the new
declarations; what is not found is added behind everything else. The rest of the sheet keeps its bytes. Syntax that
the grammar does not know is carried along as it is, as long as its braces balance.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fermata_client.css.parser import CssDeclaration, CssRule, check_balanced, find_rule, parse_css
from fermata_client.html.errors import EditError
from fermata_client.html.indentation import WHITESPACE, indent_at, is_at_line_start, reindent_text
from fermata_client.html.splices import Splice, apply_splices

LEADING_AT_RULES = ("@import", "@charset", "@namespace")
REPEATABLE_AT_RULES = ("@font-face",)


@dataclass
class RuleCounts:
    created: int = 0
    updated: int = 0
    kept: int = 0
    """Rules that were there already and were not to be touched."""


@dataclass(frozen=True)
class SheetFormat:
    """How one sheet is laid out; `indent` is where its rules begin when it has none yet."""

    indent: bytes = b""
    unit: bytes = b"  "
    newline: bytes = b"\n"


@dataclass
class StyleSheetEditor:
    """The sheets of one page, in order. A rule is sought from the last to the first; new ones go to `home`."""

    sheets: list[bytes]
    formats: list[SheetFormat]
    target_index: int = -1
    keep_existing: bool = False
    replace_existing: bool = False
    """A rule that is there already becomes the new one, instead of getting its declarations."""
    counts: RuleCounts = field(default_factory=RuleCounts)

    def __post_init__(self) -> None:
        self.target_index %= len(self.sheets)

    def put_rules(self, css: str) -> RuleCounts:
        source = css.replace("\r\n", "\n").encode()
        check_balanced(css)
        rules = parse_css(source)
        if not any(rule.key for rule in rules) and not any(rule.block_range for rule in rules):
            raise EditError("There is no CSS rule in this. Send rules like `.name { property: value }`.")
        for rule in rules:
            self._put(rule, ())
        return self.counts

    def _put(self, rule: CssRule, path: tuple[str, ...]) -> None:
        found = self._find((*path, rule.key)) if rule.key and not rule.key.startswith(REPEATABLE_AT_RULES) else None
        if found is None:
            self._add(rule, path)
        elif rule.block_range is None:
            self.counts.kept += 1
        elif rule.is_condition:
            for inner in rule.rules:
                self._put(inner, (*path, rule.key))
        elif self.keep_existing:
            self.counts.kept += 1
        else:
            self._merge(rule, found, path)

    def _find(self, path: tuple[str, ...]) -> tuple[int, CssRule] | None:
        for number in range(len(self.sheets) - 1, -1, -1):
            rule = find_rule(parse_css(self.sheets[number]), path)
            if rule is not None:
                return number, rule
        return None

    def _merge(self, rule: CssRule, found: tuple[int, CssRule], path: tuple[str, ...]) -> None:
        number, old = found
        sheet, manner = self.sheets[number], self.formats[number]
        whole = self.replace_existing or rule.key.startswith(("@keyframes", "@-webkit-keyframes"))
        if whole:
            text = _indented(rule.source.removeprefix(rule.leading_comments), indent_at(sheet, old.start), manner)
            self.sheets[number] = apply_splices(sheet, [Splice(old.start, old.end, text)])
        elif rule.is_opaque:
            self._add(rule, path)
            self.counts.created -= rule.rule_count
        else:
            self.sheets[number] = apply_splices(
                sheet, declaration_splices(sheet, old, rule.declarations, manner.unit, manner.newline)
            )
        self.counts.updated += 1
        for inner in rule.rules:
            if not (whole or rule.key.startswith("@") or rule.is_opaque):
                self._put(inner, (*path, rule.key))

    def _add(self, rule: CssRule, path: tuple[str, ...]) -> None:
        """Behind everything in the group `path`, but never where the cascade would turn its meaning around."""
        self.counts.created += rule.rule_count
        if path:
            self._add_to_group(rule, path)
        elif rule.key.startswith(LEADING_AT_RULES):
            self.sheets[self.target_index] = _at_the_top(
                self.sheets[self.target_index], rule, self.formats[self.target_index]
            )
        elif home := self._first_group_with(rule.key):
            number, group = home
            before = _before(self.sheets[number], rule, group, self.formats[number])
            self.sheets[number] = apply_splices(self.sheets[number], [before])
        else:
            self._add_behind(self.target_index, rule, None)

    def _add_to_group(self, rule: CssRule, path: tuple[str, ...]) -> None:
        home, plain = self._find(path), self._find((*path[:-1], rule.key))
        assert home is not None
        number, group = home
        if plain is None or not group.is_condition or (plain[0], plain[1].start) < (number, group.start):
            self._add_behind(number, rule, group)
            return
        outer = self._find(path[:-1]) if len(path) > 1 else None
        prelude = self.sheets[number][group.start : group.block_range[0] - 1].strip() if group.block_range else b""
        number = outer[0] if outer else self.target_index
        manner = self.formats[number]
        wrapped = replace(
            rule, source=_wrapped(prelude, _indented(rule.source, b"", manner), manner.unit), key=group.key
        )
        self._add_behind(number, wrapped, outer[1] if outer else None)

    def _first_group_with(self, key: str) -> tuple[int, CssRule] | None:
        """The first conditional group that changes the rule `key`: the plain rule must come before it."""
        for number, sheet in enumerate(self.sheets):
            for group in parse_css(sheet):
                if group.is_condition and any(inner.key == key for inner in group.iter_descendants()):
                    return number, group
        return None

    def _add_behind(self, number: int, rule: CssRule, group: CssRule | None) -> None:
        behind = _behind(self.sheets[number], rule, group, self.formats[number])
        self.sheets[number] = apply_splices(self.sheets[number], [behind])


def _before(sheet: bytes, rule: CssRule, group: CssRule, manner: SheetFormat) -> Splice:
    siblings = tuple(parse_css(sheet))
    at, indent = group.end - len(group.source), indent_at(sheet, group.start)
    apart = manner.newline * (2 if _blank_lines_between(sheet, siblings) else 1)
    return Splice(at, at, _indented(rule.source, indent, manner) + apart + indent)


def _behind(sheet: bytes, rule: CssRule, group: CssRule | None, manner: SheetFormat) -> Splice:
    begin, end = group.block_range if group and group.block_range else (0, len(sheet))
    content = sheet[begin:end].rstrip(WHITESPACE)
    siblings = group.rules if group else tuple(parse_css(sheet))
    outer = indent_at(sheet, group.start) if group else None
    indent = _sibling_indent(sheet, siblings, outer, manner)
    apart = manner.newline * (2 if _blank_lines_between(sheet, siblings) else 1)
    text = _indented(rule.source, indent, manner)
    at = begin + len(content)
    begins_file = group is None and not manner.indent and not content.strip(WHITESPACE)
    lead = b"" if begins_file else (apart if content.strip(WHITESPACE) else manner.newline) + indent
    if b"\n" in sheet[at:end]:
        return Splice(at, at, lead + text)
    closing = outer if outer is not None else indent.removesuffix(manner.unit)
    return Splice(at, end, lead + text + manner.newline + closing)


def _at_the_top(sheet: bytes, rule: CssRule, manner: SheetFormat) -> bytes:
    first = [old for old in parse_css(sheet) if old.key.startswith(LEADING_AT_RULES)]
    at = first[-1].end if first else 0
    behind = b"" if sheet[at : at + 1] in (b"\n", b"\r") else manner.newline
    return apply_splices(sheet, [Splice(at, at, manner.newline + manner.indent + rule.source + behind)])


def _sibling_indent(sheet: bytes, siblings: tuple[CssRule, ...], outer: bytes | None, manner: SheetFormat) -> bytes:
    for rule in siblings:
        if is_at_line_start(sheet, rule.start):
            return indent_at(sheet, rule.start)
    return manner.indent if outer is None else outer + manner.unit


def _indented(raw: bytes, indent: bytes, manner: SheetFormat) -> bytes:
    return reindent_text(raw, indent=indent, unit=manner.unit, newline=manner.newline)


def _wrapped(prelude: bytes, raw: bytes, unit: bytes) -> bytes:
    lines = [unit + line if line.strip() else line for line in raw.splitlines()]
    return b"\n".join([prelude + b" {", *lines, b"}"])


def declaration_splices(
    sheet: bytes, old: CssRule, new: tuple[CssDeclaration, ...], unit: bytes, newline: bytes
) -> list[Splice]:
    """The splices that give the rule the new declarations: values in place, new properties behind the last one."""
    values: dict[str, list[str]] = {}
    for declaration in new:
        values.setdefault(declaration.name, []).append(declaration.value)
    splices, added = [], []
    for name, wanted in values.items():
        there = [declaration for declaration in old.declarations if declaration.name == name][-len(wanted) :]
        if there:
            splices += _revaluing(there, name, wanted)
        else:
            added += [f"{name}: {value};" for value in wanted]
    return splices + (_appending(sheet, old, added, unit, newline) if added else [])


def _revaluing(there: list[CssDeclaration], name: str, wanted: list[str]) -> list[Splice]:
    """Several values of one property are fallbacks, the last of them the best: they are matched from the end."""
    more = len(wanted) - len(there)
    texts = [f"; {name}: ".join(wanted[: more + 1]), *wanted[more + 1 :]]
    return [Splice(old.value_start, old.value_end, new.encode()) for old, new in zip(there, texts, strict=True)]


def _appending(sheet: bytes, rule: CssRule, lines: list[str], unit: bytes, newline: bytes) -> list[Splice]:
    assert rule.block_range is not None
    begin, end = rule.block_range
    last = rule.declarations[-1] if rule.declarations else None
    at = last.end if last else begin
    open_end = last is not None and sheet[last.end - 1 : last.end] != b";"
    comment = re.compile(rb"[ \t]*/\*[^\n]*?\*/[ \t]*(?=\r?\n)").match(sheet, at)
    behind = comment.end() if comment else at
    text = [line.encode() for line in lines]
    if b"\n" in sheet[begin:end] or not sheet[begin:end].strip(WHITESPACE):
        indent = _declaration_indent(sheet, rule, unit)
        added = b"".join(newline + indent + line for line in text)
        if not sheet[begin:end].strip(WHITESPACE):
            return [Splice(begin, end, added + newline + indent_at(sheet, rule.start))]
    else:
        space = b" " if sheet[begin : begin + 1] in (b" ", b"\t") else b""
        added = b"".join((b" " if space else b"") + line for line in text)
    if open_end and behind == at:
        return [Splice(at, at, b";" + added)]
    semicolon = [Splice(at, at, b";")] if open_end else []
    return [*semicolon, Splice(behind, behind, added)]


def _declaration_indent(sheet: bytes, rule: CssRule, unit: bytes) -> bytes:
    for declaration in rule.declarations:
        if is_at_line_start(sheet, declaration.start):
            return indent_at(sheet, declaration.start)
    return indent_at(sheet, rule.start) + unit


def _blank_lines_between(sheet: bytes, rules: tuple[CssRule, ...]) -> bool:
    gaps = [sheet[before.end : after.start] for before, after in pairwise(rules)]
    apart = sum(1 for gap in gaps if re.match(rb"[^\n]*\n[ \t]*\r?\n", gap))
    return bool(gaps) and apart * 2 > len(gaps)
