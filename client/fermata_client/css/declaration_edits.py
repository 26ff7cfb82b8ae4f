"""Compute the splices that set declarations of a rule."""

import re
from collections.abc import Sequence

from fermata_client.css.parser import CssDeclaration, CssRule
from fermata_client.html.indentation import WHITESPACE, indent_at, is_at_line_start
from fermata_client.html.splices import Splice

_SAME_LINE_COMMENT = re.compile(rb"[ \t]*/\*[^\n]*?\*/[ \t]*(?=\r?\n)")


def declaration_splices(
    sheet: bytes, rule: CssRule, declarations: Sequence[CssDeclaration], unit: bytes, newline: bytes
) -> list[Splice]:
    """Set declarations of a rule: existing properties get their new values, new ones follow the last declaration.

    Args:
        unit: one step of indentation in the sheet.
        newline: line end of the sheet.
    """
    values_by_name: dict[str, list[str]] = {}
    for declaration in declarations:
        values_by_name.setdefault(declaration.name, []).append(declaration.value)
    splices: list[Splice] = []
    added: list[str] = []
    for name, values in values_by_name.items():
        existing = [own for own in rule.declarations if own.name == name][-len(values) :]
        if existing:
            splices += _replace_values(existing, name, values)
        else:
            added += [f"{name}: {value};" for value in values]
    return splices + (_append_declarations(sheet, rule, added, unit, newline) if added else [])


def _replace_values(existing: list[CssDeclaration], name: str, values: list[str]) -> list[Splice]:
    """Replace the values of one property. Several are fallbacks, the last one the best: they match from the end."""
    surplus = len(values) - len(existing)
    texts = [f"; {name}: ".join(values[: surplus + 1]), *values[surplus + 1 :]]
    return [
        Splice(declaration.value_start, declaration.value_end, text.encode())
        for declaration, text in zip(existing, texts, strict=True)
    ]


def _append_declarations(sheet: bytes, rule: CssRule, lines: list[str], unit: bytes, newline: bytes) -> list[Splice]:
    assert rule.block_range is not None
    start, end = rule.block_range
    last = rule.declarations[-1] if rule.declarations else None
    position = last.end if last else start
    lacks_semicolon = last is not None and sheet[last.end - 1 : last.end] != b";"
    comment = _SAME_LINE_COMMENT.match(sheet, position)
    after_comment = comment.end() if comment else position
    is_empty = not sheet[start:end].strip(WHITESPACE)
    # Rules inside have lines of their own, also where the declarations before them are on one.
    shown = sheet[start : last.end if last and rule.rules else end]
    if b"\n" in shown or is_empty:
        indent = _declaration_indent(sheet, rule, unit)
        text = b"".join(newline + indent + line.encode() for line in lines)
        if is_empty:
            return [Splice(start, end, text + newline + indent_at(sheet, rule.start))]
    else:
        space = b" " if sheet[start : start + 1] in (b" ", b"\t") else b""
        text = b"".join(space + line.encode() for line in lines)
    if lacks_semicolon and after_comment == position:
        return [Splice(position, position, b";" + text)]
    semicolon = [Splice(position, position, b";")] if lacks_semicolon else []
    return [*semicolon, Splice(after_comment, after_comment, text)]


def _declaration_indent(sheet: bytes, rule: CssRule, unit: bytes) -> bytes:
    for declaration in rule.declarations:
        if is_at_line_start(sheet, declaration.start):
            return indent_at(sheet, declaration.start)
    return indent_at(sheet, rule.start) + unit
