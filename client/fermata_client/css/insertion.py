"""Compute the splices that insert a rule into a style sheet, laid out like the rules around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fermata_client.css.parser import CssRule, missing_end
from fermata_client.html.indentation import WHITESPACE, indent_at, is_at_line_start, reindent_text
from fermata_client.html.splices import Splice

LEADING_AT_RULES = ("@import", "@charset", "@namespace")
"""Statements that are valid only before all rules."""

_BLANK_LINE_GAP = re.compile(rb"[^\n]*\n[ \t]*\r?\n")


@dataclass(frozen=True)
class SheetFormat:
    """Layout of a style sheet."""

    indent: bytes = b""
    """Indentation of its rules while it has none."""
    unit: bytes = b"  "
    """One step of indentation."""
    newline: bytes = b"\n"

    def reindent(self, text: bytes, indent: bytes) -> bytes:
        return reindent_text(text, indent=indent, unit=self.unit, newline=self.newline)


def splice_before_group(sheet: bytes, rule: CssRule, group: CssRule, gap: bytes, sheet_format: SheetFormat) -> Splice:
    """Insert a rule before a conditional group and its comments.

    Args:
        sheet: The style sheet.
        rule: The rule to insert.
        group: The group.
        gap: The line ends between the rules of the sheet, as `find_gap` finds them.
        sheet_format: How the sheet is laid out.
    """
    position = group.end - len(group.source)
    indent = indent_at(sheet, group.start)
    return Splice(position, position, sheet_format.reindent(rule.source, indent) + gap + indent)


def splice_at_end(
    sheet: bytes,
    sheet_rules: Sequence[CssRule],
    rules: Sequence[CssRule],
    group: CssRule | None,
    sheet_format: SheetFormat,
) -> Splice:
    """Insert rules at the end of a conditional group; None for the end of the sheet."""
    start, end = group.block_range if group and group.block_range else (0, len(sheet))
    content = sheet[start:end].rstrip(WHITESPACE)
    siblings = group.rules if group else sheet_rules
    group_indent = indent_at(sheet, group.start) if group else None
    indent = _sibling_indent(sheet, siblings, group_indent, sheet_format)
    gap = find_gap(sheet, siblings, sheet_format) + indent
    text = gap.join(sheet_format.reindent(rule.source, indent) for rule in rules)
    position = start + len(content)
    is_empty = not content.strip(WHITESPACE)
    if is_empty and group is None and not sheet_format.indent:
        lead = b""  # the first rule of a file
    elif is_empty:
        lead = sheet_format.newline + indent
    else:
        lead = gap
    if group is None:  # otherwise the rules would be within a rule that is not closed
        lead = missing_end(content.decode("utf-8", "replace")).encode() + lead
    if b"\n" in sheet[position:end]:
        return Splice(position, position, lead + text)
    closing_indent = group_indent if group_indent is not None else indent.removesuffix(sheet_format.unit)
    return Splice(position, end, lead + text + sheet_format.newline + closing_indent)


def splice_leading(
    sheet: bytes, sheet_rules: Sequence[CssRule], rules: Sequence[CssRule], sheet_format: SheetFormat
) -> Splice:
    """Insert some of `LEADING_AT_RULES` after those that the sheet has."""
    leading = [own for own in sheet_rules if own.key.startswith(LEADING_AT_RULES)]
    position = leading[-1].end if leading else 0
    line_after = b"" if sheet[position : position + 1] in (b"\n", b"\r") else sheet_format.newline
    text = b"".join(sheet_format.newline + sheet_format.indent + rule.source for rule in rules)
    return Splice(position, position, text + line_after)


def _sibling_indent(
    sheet: bytes, siblings: Sequence[CssRule], group_indent: bytes | None, sheet_format: SheetFormat
) -> bytes:
    for rule in siblings:
        if is_at_line_start(sheet, rule.start):
            return indent_at(sheet, rule.start)
    return sheet_format.indent if group_indent is None else group_indent + sheet_format.unit


def find_gap(sheet: bytes, rules: Sequence[CssRule], sheet_format: SheetFormat) -> bytes:
    """Return the line ends between rules: two if a blank line separates most of them. All of them are looked at."""
    gaps = [sheet[before.end : after.start] for before, after in pairwise(rules)]
    blank_line_count = sum(1 for gap in gaps if _BLANK_LINE_GAP.match(gap))
    return sheet_format.newline * (2 if gaps and blank_line_count * 2 > len(gaps) else 1)
