"""Compare HTML and CSS of different editors: as trees, without what has no meaning."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fermata_client.css.parser import CssRule, parse_css, rule_key

VALUELESS = ("", None)
PIECE = re.compile(r",(?![^(\[]*[)\]])")
"""A comma of a selector that is outside of brackets."""


def normalize_html(html: str) -> list[str]:
    """Return the content of the body as lines: tags with sorted attributes, texts with single spaces, comments."""
    parser = LexborHTMLParser(f"<!doctype html><body>{html}" if "<body" not in html else html)
    return [] if parser.body is None else list(_iter_lines(parser.body, 0))


def _iter_lines(parent: LexborNode, depth: int) -> Iterator[str]:
    for node in parent.iter(include_text=True):
        indent = "  " * depth
        if node.is_text_node:
            text = " ".join((node.text(deep=False) or "").split())
            if text:
                yield indent + text
        elif node.is_comment_node:
            yield f"{indent}<!-- {(node.comment_content or '').strip()} -->"
        elif node.tag != "style":
            attributes = sorted(node.attributes.items(), key=str)
            written = (name if value in VALUELESS else f'{name}="{value}"' for name, value in attributes)
            yield indent + f"<{' '.join([str(node.tag), *written])}>"
            if node.tag == "template":
                yield f"{indent}  {' '.join((node.inner_html or '').split())}"
            else:
                yield from _iter_lines(node, depth + 1)


Declarations = list[tuple[str, str]]


def normalize_css(css: str) -> dict[str, Declarations]:
    """Return the declarations of each selector, alone and with the condition around it."""
    normalized: dict[str, Declarations] = {}
    for path, rule in _iter_style_rules(parse_css(css.encode()), ""):
        for selector in PIECE.split(rule.key):
            declarations = [(own.name, normalize_value(own.value)) for own in rule.declarations]
            normalized.setdefault(f"{path}{selector.strip()}", []).extend(declarations)
    return {key: value for key, value in normalized.items() if value}


def normalize_value(value: str) -> str:
    """Return a value without the white space that means nothing."""
    return re.sub(r"\s*([,()])\s*", r"\1", " ".join(value.split()))


def _iter_style_rules(rules: tuple[CssRule, ...] | list[CssRule], path: str) -> Iterator[tuple[str, CssRule]]:
    for rule in rules:
        if rule.declarations:
            yield path, rule
        if rule.rules:
            is_style = not rule.key.startswith("@")
            yield from _iter_style_rules(rule.rules, path if is_style else f"{path}{rule_key(rule.key)} ")
