"""Parse a style sheet into rules with their byte positions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import tree_sitter_css
from tree_sitter import Language, Node

from fermata_client.html.edit_error import EditError
from fermata_client.html.syntax_tree import parse_syntax

BLOCK_NODE_TYPES = frozenset({"block", "keyframe_block_list"})
CONDITIONAL_AT_RULES = ("@media", "@supports", "@container", "@layer", "@scope", "@starting-style")
TOO_MUCH_UNKNOWN = "A style sheet has too much in it that is no CSS, so that it cannot be read. Correct or remove it."
MAX_RULE_DEPTH = 50
CLOSING_BRACKETS = {"{": "}", "(": ")", "[": "]"}

_LANGUAGE = Language(tree_sitter_css.language())
_TOKEN = re.compile(r"/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\.|\s*[>+~,]\s*|\s+|.", re.DOTALL)
"""A comment that nothing closes reaches to the end, as in browsers."""
_BLANK_BESIDE_MARK = re.compile(r"(?<!\s)\s++(?=[:()])|(?<=[:()])\s++")


@dataclass(frozen=True)
class CssDeclaration:
    name: str
    value: str
    start: int
    value_start: int
    value_end: int
    end: int
    """After the semicolon, if there is one."""


@dataclass(frozen=True)
class CssRule:
    """A style rule, a conditional group, a statement, or syntax that the grammar does not know."""

    key: str
    """The normalized prelude (`rule_key`); empty for unknown syntax."""
    start: int
    end: int
    source: bytes
    """With the comments before it."""
    leading_comments: bytes = b""
    """Those comments, up to `start`."""
    block_range: tuple[int, int] | None = None
    """The content between its braces."""
    declarations: tuple[CssDeclaration, ...] = ()
    rules: tuple["CssRule", ...] = ()
    is_opaque: bool = False
    """The block has syntax that the grammar does not know, so that declarations may be missing here."""

    @property
    def prelude(self) -> str:
        """The text before the block, in one line."""
        text = self.source[len(self.leading_comments) :]
        prelude = text[: self.block_range[0] - 1 - self.start] if self.block_range else text
        return " ".join(prelude.decode("utf-8", "replace").split())

    @property
    def is_condition(self) -> bool:
        return self.key.startswith(CONDITIONAL_AT_RULES) and self.block_range is not None

    def iter_descendants(self) -> Iterator["CssRule"]:
        """Yield the rules in this one, at any depth."""
        for rule in self.rules:
            yield rule
            yield from rule.iter_descendants()

    @property
    def rule_count(self) -> int:
        """Number of rules that a model counts when this one is added: conditional groups are not counted."""
        return sum(rule.rule_count for rule in self.rules) if self.is_condition else 1


def parse_css(source: bytes) -> list[CssRule]:
    """Parse any bytes. What the grammar does not know is kept as opaque rules.

    Raises:
        EditError: there is so much of it that parsing takes too long, or rules lie too deep in each other.
    """
    return list(_iter_rules(source, parse_syntax(_LANGUAGE, source, TOO_MUCH_UNKNOWN).root_node, 0))


def find_rule(rules: Sequence[CssRule], path: tuple[str, ...]) -> CssRule | None:
    """Return the last rule at a path of keys, the outermost first: in CSS a later rule wins too."""
    for rule in reversed(rules):
        if rule.key == path[0]:
            match = find_rule(rule.rules, path[1:]) if len(path) > 1 else rule
            if match is not None:
                return match
    return None


def check_balanced(css: str) -> None:
    """Raise `EditError` for CSS that would take in the rules after it, or would end the style element."""
    if "</style" in css.lower():
        raise EditError("CSS must not contain a </style> tag.")
    expected: list[str] = []
    is_comment_open = False
    for token in _TOKEN.findall(css):
        if token in CLOSING_BRACKETS:
            expected.append(CLOSING_BRACKETS[token])
        elif token in CLOSING_BRACKETS.values() and (not expected or expected.pop() != token):
            raise EditError(f"There is a {token} too many in this CSS. Send complete rules.")
        elif token in ("'", '"'):
            raise EditError("A quoted text in this CSS is not closed. Send complete rules.")
        elif token.startswith("/*"):
            is_comment_open = _is_open_comment(token)
    if expected or is_comment_open:
        missing = expected[-1] if expected else "*/"
        raise EditError(f"A {missing} is missing in this CSS. Send complete rules.")


def missing_end(css: str) -> str:
    """Return what closes the comment and the blocks that CSS leaves open, as its end does in browsers."""
    expected: list[str] = []
    comment_end = ""
    for token in _TOKEN.findall(css):
        if token in CLOSING_BRACKETS:
            expected.append(CLOSING_BRACKETS[token])
        elif expected and token == expected[-1]:
            expected.pop()
        elif token.startswith("/*"):
            comment_end = "*/" if _is_open_comment(token) else ""
    return comment_end + "".join(reversed(expected))


def _is_open_comment(token: str) -> bool:
    return len(token) < len("/**/") or not token.endswith("*/")


def rule_key(prelude: str) -> str:
    """Normalize a prelude: those that differ in white space and comments only have the same key."""
    tokens = (token for token in _TOKEN.findall(prelude.strip()) if not token.startswith("/*"))
    parts = [token if token[0] in "\"'" else token.strip() or " " for token in tokens]
    key = "".join(part for previous, part in pairwise(["", *parts]) if (previous, part) != (" ", " "))
    return _BLANK_BESIDE_MARK.sub("", key) if key.startswith("@") else key


def _iter_rules(source: bytes, node: Node, depth: int) -> Iterator[CssRule]:
    if depth > MAX_RULE_DEPTH:
        raise EditError(f"Rules of a style sheet lie more than {MAX_RULE_DEPTH} deep in each other.")
    comments_start: int | None = None
    for child in node.children:
        if child.type.endswith("comment"):
            comments_start = child.start_byte if comments_start is None else comments_start
            continue
        if not child.is_named or child.type == "declaration":
            continue
        yield _rule_from_node(source, child, child.start_byte if comments_start is None else comments_start, depth)
        comments_start = None


def _rule_from_node(source: bytes, node: Node, comments_start: int, depth: int) -> CssRule:
    block = next((child for child in node.children if child.type in BLOCK_NODE_TYPES), None)
    prelude_end = block.start_byte if block else node.end_byte
    prelude = source[node.start_byte : prelude_end].decode("utf-8", "replace")
    is_known = block is not None or node.type.endswith("statement") or node.type == "at_rule"
    children = block.children if block else []
    return CssRule(
        key=rule_key(prelude.rstrip("; \t\r\n")) if is_known else "",
        start=node.start_byte,
        end=node.end_byte,
        source=source[comments_start : node.end_byte],
        leading_comments=source[comments_start : node.start_byte],
        block_range=(block.start_byte + 1, block.end_byte - 1) if block else None,
        declarations=tuple(_declaration_from_node(source, child) for child in children if child.type == "declaration"),
        rules=tuple(_iter_rules(source, block, depth + 1)) if block else (),
        is_opaque=any(child.type == "ERROR" for child in children),
    )


def _declaration_from_node(source: bytes, node: Node) -> CssDeclaration:
    colon = next(child for child in node.children if child.type == ":")
    name = source[node.start_byte : colon.start_byte].decode("utf-8", "replace").strip()
    end = node.end_byte
    has_semicolon = source[end - 1 : end] == b";"
    value = source[colon.end_byte : end - 1 if has_semicolon else end]
    value_start = colon.end_byte + len(value) - len(value.lstrip())
    stripped = value.strip()
    return CssDeclaration(
        name=name if name.startswith("--") else name.lower(),
        value=stripped.decode("utf-8", "replace"),
        start=node.start_byte,
        value_start=value_start,
        value_end=value_start + len(stripped),
        end=end,
    )
