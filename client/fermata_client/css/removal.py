"""Rules and declarations taken out of style sheets, with the lines they leave empty."""

from fermata_client.css.parser import CssRule, parse_css, rule_key
from fermata_client.html.indentation import WHITESPACE, widen_to_lines
from fermata_client.html.splices import Splice, apply_splices


def remove_rules(sheets: list[bytes], selectors: list[str]) -> tuple[list[bytes], list[str]]:
    """The sheets without the rules of these selectors, also those within conditions, and what went."""
    keys, found = {rule_key(selector) for selector in selectors}, []
    changed = []
    for sheet in sheets:
        gone = _outermost(parse_css(sheet), keys)
        found += [rule.key for rule in gone]
        changed.append(_without(sheet, [(rule.end - len(rule.source), rule.end) for rule in gone]))
    return changed, found


def remove_properties(
    sheets: list[bytes], selectors: list[str], properties: list[str], *, within: str = ""
) -> tuple[list[bytes], int]:
    """The sheets without these properties in the rules of these selectors (right within one condition, if given), and
    how many declarations went.
    """
    keys, names = {rule_key(selector) for selector in selectors}, {_plain(name) for name in properties}
    changed, count = [], 0
    for sheet in sheets:
        every = [
            one
            for rule in parse_css(sheet)
            if not within or rule.key == within
            for one in (rule, *rule.iter_descendants())
        ]
        cuts: list[tuple[int, int]] = []
        for rule in (rule for rule in every if rule.key in keys):
            gone = [one for one in rule.declarations if one.name in names]
            count += len(gone)
            cuts += [(one.start, one.end) for one in gone]
        changed.append(_without(sheet, cuts))
    return changed, count


def _plain(name: str) -> str:
    return name if name.startswith("--") else name.lower()


def _outermost(rules: list[CssRule] | tuple[CssRule, ...], keys: set[str]) -> list[CssRule]:
    """The rules with these keys; a condition of which nothing is left is gone as a whole."""
    found: list[CssRule] = []
    for rule in rules:
        inner = _outermost(rule.rules, keys)
        if rule.key in keys or (
            rule.is_condition and rule.rules and len(inner) == len(rule.rules) and not rule.is_opaque
        ):
            found.append(rule)
        else:
            found += inner
    return found


def _without(sheet: bytes, cuts: list[tuple[int, int]]) -> bytes:
    splices: list[Splice] = []
    for start, end in sorted(cuts):
        begin, stop = widen_to_lines(sheet, start, end)
        if (
            (begin, stop) == (start, end)
            and sheet[start - 1 : start] in (b" ", b"\t")
            and sheet[end : end + 1] in b" }"
        ):
            begin = len(sheet[:start].rstrip(WHITESPACE))
        if splices and begin < splices[-1].end:
            begin = splices[-1].end
        splices.append(Splice(begin, max(begin, stop), b""))
    return apply_splices(sheet, splices)
