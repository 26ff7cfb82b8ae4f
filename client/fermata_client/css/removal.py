"""Remove rules and declarations from style sheets, with the lines they leave empty."""

from collections.abc import Iterator, Sequence

from fermata_client.css.parser import CssRule, parse_css, rule_key
from fermata_client.html.indentation import WHITESPACE, widen_to_lines
from fermata_client.html.splices import Splice, apply_splices

_Range = tuple[int, int]


def remove_rules(sheets: list[bytes], selectors: list[str]) -> tuple[list[bytes], list[str]]:
    """Remove the rules of these selectors, also those in conditional groups.

    Returns:
        The sheets, and the keys of the rules that were removed.
    """
    keys = {rule_key(selector) for selector in selectors}
    changed_sheets: list[bytes] = []
    removed_keys: list[str] = []
    for sheet in sheets:
        removed = _outermost_matches(parse_css(sheet), keys)
        removed_keys += [rule.key for rule in removed]
        changed_sheets.append(_remove_ranges(sheet, [(rule.end - len(rule.source), rule.end) for rule in removed]))
    return changed_sheets, removed_keys


def remove_properties(
    sheets: list[bytes], selectors: list[str], properties: list[str], *, within: str = ""
) -> tuple[list[bytes], int]:
    """Remove properties from the rules of these selectors.

    Args:
        within: key of the only rule or conditional group to search; empty searches everything.

    Returns:
        The sheets, and the number of declarations that were removed.
    """
    keys = {rule_key(selector) for selector in selectors}
    names = {name if name.startswith("--") else name.lower() for name in properties}
    changed_sheets: list[bytes] = []
    removed_count = 0
    for sheet in sheets:
        removed = [
            declaration
            for rule in _iter_all_rules(sheet, within)
            if rule.key in keys
            for declaration in rule.declarations
            if declaration.name in names
        ]
        removed_count += len(removed)
        changed_sheets.append(_remove_ranges(sheet, [(declaration.start, declaration.end) for declaration in removed]))
    return changed_sheets, removed_count


def _iter_all_rules(sheet: bytes, within: str) -> Iterator[CssRule]:
    for rule in parse_css(sheet):
        if not within or rule.key == within:
            yield rule
            yield from rule.iter_descendants()


def _outermost_matches(rules: Sequence[CssRule], keys: set[str]) -> list[CssRule]:
    """Return the rules with these keys; instead of all rules of a conditional group, the group itself."""
    matches: list[CssRule] = []
    for rule in rules:
        inner = _outermost_matches(rule.rules, keys)
        is_emptied = rule.is_condition and rule.rules and len(inner) == len(rule.rules) and not rule.is_opaque
        if rule.key in keys or is_emptied:
            matches.append(rule)
        else:
            matches += inner
    return matches


def _remove_ranges(sheet: bytes, ranges: list[_Range]) -> bytes:
    splices: list[Splice] = []
    for rule_range in sorted(ranges):
        start, end = _widen_range(sheet, rule_range)
        if splices:
            start = max(start, splices[-1].end)
        splices.append(Splice(start, max(start, end), b""))
    return apply_splices(sheet, splices)


def _widen_range(sheet: bytes, rule_range: _Range) -> _Range:
    """Widen a range to the lines it would leave empty; within a line, by the white space before it."""
    start, end = rule_range
    widened = widen_to_lines(sheet, start, end)
    if widened == rule_range and sheet[start - 1 : start] in (b" ", b"\t") and sheet[end : end + 1] in b" }":
        return len(sheet[:start].rstrip(WHITESPACE)), end
    return widened
