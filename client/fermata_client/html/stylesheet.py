"""CSS by source positions: put rules into a style sheet, merging with the rules that are already there.

A rule is found by its selector and the conditions around it (`@media`, `@supports`, …). What is found gets the new
declarations; what is not found is added behind everything else. The rest of the sheet keeps its bytes. Syntax that
the grammar does not know is carried along as it is, as long as its braces balance.
"""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fermata_client.html.cannot import CannotDo
from fermata_client.html.css_rules import Declaration, Rule, check_balance, find, read
from fermata_client.html.layout import BLANK, Splice, indent_at, reindent, spliced, starts_line

FIRST = ("@import", "@charset", "@namespace")
REPEATABLE = ("@font-face",)


@dataclass
class Counts:
    created: int = 0
    updated: int = 0
    kept: int = 0
    """Rules that were there already and were not to be touched."""


@dataclass(frozen=True)
class Manner:
    """How one sheet is laid out; `indent` is where its rules begin when it has none yet."""

    indent: bytes = b""
    unit: bytes = b"  "
    newline: bytes = b"\n"


@dataclass
class StyleSheets:
    """The sheets of one page, in order. A rule is sought from the last to the first; new ones go to `home`."""

    sheets: list[bytes]
    manners: list[Manner]
    home: int = -1
    keep_existing: bool = False
    replace_whole: bool = False
    """A rule that is there already becomes the new one, instead of getting its declarations."""
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.home %= len(self.sheets)

    def put(self, css: str) -> Counts:
        source = css.replace("\r\n", "\n").encode()
        check_balance(css)
        rules = read(source)
        if not any(rule.key for rule in rules) and not any(rule.block for rule in rules):
            raise CannotDo("There is no CSS rule in this. Send rules like `.name { property: value }`.")
        for rule in rules:
            self._put(rule, ())
        return self.counts

    def _put(self, rule: Rule, path: tuple[str, ...]) -> None:
        found = self._find((*path, rule.key)) if rule.key and not rule.key.startswith(REPEATABLE) else None
        if found is None:
            self._add(rule, path)
        elif rule.block is None:
            self.counts.kept += 1
        elif rule.is_condition:
            for inner in rule.rules:
                self._put(inner, (*path, rule.key))
        elif self.keep_existing:
            self.counts.kept += 1
        else:
            self._merge(rule, found, path)

    def _find(self, path: tuple[str, ...]) -> tuple[int, Rule] | None:
        for number in range(len(self.sheets) - 1, -1, -1):
            rule = find(read(self.sheets[number]), path)
            if rule is not None:
                return number, rule
        return None

    def _merge(self, rule: Rule, found: tuple[int, Rule], path: tuple[str, ...]) -> None:
        number, old = found
        sheet, manner = self.sheets[number], self.manners[number]
        whole = self.replace_whole or rule.key.startswith(("@keyframes", "@-webkit-keyframes"))
        if whole:
            text = _indented(rule.raw.removeprefix(rule.lead), indent_at(sheet, old.start), manner)
            self.sheets[number] = spliced(sheet, [Splice(old.start, old.end, text)])
        elif rule.opaque:
            self._add(rule, path)
            self.counts.created -= rule.size
        else:
            self.sheets[number] = spliced(sheet, merging(sheet, old, rule.declarations, manner.unit, manner.newline))
        self.counts.updated += 1
        for inner in rule.rules:
            if not (whole or rule.key.startswith("@") or rule.opaque):
                self._put(inner, (*path, rule.key))

    def _add(self, rule: Rule, path: tuple[str, ...]) -> None:
        """Behind everything in the group `path`, but never where the cascade would turn its meaning around."""
        self.counts.created += rule.size
        if path:
            self._add_to_group(rule, path)
        elif rule.key.startswith(FIRST):
            self.sheets[self.home] = _at_the_top(self.sheets[self.home], rule, self.manners[self.home])
        elif home := self._first_group_with(rule.key):
            number, group = home
            before = _before(self.sheets[number], rule, group, self.manners[number])
            self.sheets[number] = spliced(self.sheets[number], [before])
        else:
            self._add_behind(self.home, rule, None)

    def _add_to_group(self, rule: Rule, path: tuple[str, ...]) -> None:
        home, plain = self._find(path), self._find((*path[:-1], rule.key))
        assert home is not None
        number, group = home
        if plain is None or not group.is_condition or (plain[0], plain[1].start) < (number, group.start):
            self._add_behind(number, rule, group)
            return
        outer = self._find(path[:-1]) if len(path) > 1 else None
        prelude = self.sheets[number][group.start : group.block[0] - 1].strip() if group.block else b""
        number = outer[0] if outer else self.home
        manner = self.manners[number]
        wrapped = replace(rule, raw=_wrapped(prelude, _indented(rule.raw, b"", manner), manner.unit), key=group.key)
        self._add_behind(number, wrapped, outer[1] if outer else None)

    def _first_group_with(self, key: str) -> tuple[int, Rule] | None:
        """The first conditional group that changes the rule `key`: the plain rule must come before it."""
        for number, sheet in enumerate(self.sheets):
            for group in read(sheet):
                if group.is_condition and any(inner.key == key for inner in group.everything()):
                    return number, group
        return None

    def _add_behind(self, number: int, rule: Rule, group: Rule | None) -> None:
        behind = _behind(self.sheets[number], rule, group, self.manners[number])
        self.sheets[number] = spliced(self.sheets[number], [behind])


def _before(sheet: bytes, rule: Rule, group: Rule, manner: Manner) -> Splice:
    siblings = tuple(read(sheet))
    at, indent = group.end - len(group.raw), indent_at(sheet, group.start)
    apart = manner.newline * (2 if _blank_lines_between(sheet, siblings) else 1)
    return Splice(at, at, _indented(rule.raw, indent, manner) + apart + indent)


def _behind(sheet: bytes, rule: Rule, group: Rule | None, manner: Manner) -> Splice:
    begin, end = group.block if group and group.block else (0, len(sheet))
    content = sheet[begin:end].rstrip(BLANK)
    siblings = group.rules if group else tuple(read(sheet))
    outer = indent_at(sheet, group.start) if group else None
    indent = _sibling_indent(sheet, siblings, outer, manner)
    apart = manner.newline * (2 if _blank_lines_between(sheet, siblings) else 1)
    text = _indented(rule.raw, indent, manner)
    at = begin + len(content)
    begins_file = group is None and not manner.indent and not content.strip(BLANK)
    lead = b"" if begins_file else (apart if content.strip(BLANK) else manner.newline) + indent
    if b"\n" in sheet[at:end]:
        return Splice(at, at, lead + text)
    closing = outer if outer is not None else indent.removesuffix(manner.unit)
    return Splice(at, end, lead + text + manner.newline + closing)


def _at_the_top(sheet: bytes, rule: Rule, manner: Manner) -> bytes:
    first = [old for old in read(sheet) if old.key.startswith(FIRST)]
    at = first[-1].end if first else 0
    behind = b"" if sheet[at : at + 1] in (b"\n", b"\r") else manner.newline
    return spliced(sheet, [Splice(at, at, manner.newline + manner.indent + rule.raw + behind)])


def _sibling_indent(sheet: bytes, siblings: tuple[Rule, ...], outer: bytes | None, manner: Manner) -> bytes:
    for rule in siblings:
        if starts_line(sheet, rule.start):
            return indent_at(sheet, rule.start)
    return manner.indent if outer is None else outer + manner.unit


def _indented(raw: bytes, indent: bytes, manner: Manner) -> bytes:
    return reindent(raw, indent=indent, unit=manner.unit, newline=manner.newline)


def _wrapped(prelude: bytes, raw: bytes, unit: bytes) -> bytes:
    lines = [unit + line if line.strip() else line for line in raw.splitlines()]
    return b"\n".join([prelude + b" {", *lines, b"}"])


def merging(sheet: bytes, old: Rule, new: tuple[Declaration, ...], unit: bytes, newline: bytes) -> list[Splice]:
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


def _revaluing(there: list[Declaration], name: str, wanted: list[str]) -> list[Splice]:
    """Several values of one property are fallbacks, the last of them the best: they are matched from the end."""
    more = len(wanted) - len(there)
    texts = [f"; {name}: ".join(wanted[: more + 1]), *wanted[more + 1 :]]
    return [Splice(old.value_start, old.value_end, new.encode()) for old, new in zip(there, texts, strict=True)]


def _appending(sheet: bytes, rule: Rule, lines: list[str], unit: bytes, newline: bytes) -> list[Splice]:
    assert rule.block is not None
    begin, end = rule.block
    last = rule.declarations[-1] if rule.declarations else None
    at = last.end if last else begin
    open_end = last is not None and sheet[last.end - 1 : last.end] != b";"
    comment = re.compile(rb"[ \t]*/\*[^\n]*?\*/[ \t]*(?=\r?\n)").match(sheet, at)
    behind = comment.end() if comment else at
    text = [line.encode() for line in lines]
    if b"\n" in sheet[begin:end] or not sheet[begin:end].strip(BLANK):
        indent = _declaration_indent(sheet, rule, unit)
        added = b"".join(newline + indent + line for line in text)
        if not sheet[begin:end].strip(BLANK):
            return [Splice(begin, end, added + newline + indent_at(sheet, rule.start))]
    else:
        space = b" " if sheet[begin : begin + 1] in (b" ", b"\t") else b""
        added = b"".join((b" " if space else b"") + line for line in text)
    if open_end and behind == at:
        return [Splice(at, at, b";" + added)]
    semicolon = [Splice(at, at, b";")] if open_end else []
    return [*semicolon, Splice(behind, behind, added)]


def _declaration_indent(sheet: bytes, rule: Rule, unit: bytes) -> bytes:
    for declaration in rule.declarations:
        if starts_line(sheet, declaration.start):
            return indent_at(sheet, declaration.start)
    return indent_at(sheet, rule.start) + unit


def _blank_lines_between(sheet: bytes, rules: tuple[Rule, ...]) -> bool:
    gaps = [sheet[before.end : after.start] for before, after in pairwise(rules)]
    apart = sum(1 for gap in gaps if re.match(rb"[^\n]*\n[ \t]*\r?\n", gap))
    return bool(gaps) and apart * 2 > len(gaps)
