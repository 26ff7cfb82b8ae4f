"""The rules of a style sheet with their byte positions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_css
from tree_sitter import Language, Node, Parser

from fermata_client.html.errors import EditError

BLOCK_NODE_TYPES = frozenset({"block", "keyframe_block_list"})
CONDITIONAL_AT_RULES = ("@media", "@supports", "@container", "@layer", "@scope", "@starting-style")
CLOSING_BRACKETS = {"{": "}", "(": ")", "[": "]"}

_language = Language(tree_sitter_css.language())
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\.|\s*[>+~,]\s*|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class CssDeclaration:
    name: str
    value: str
    start: int
    value_start: int
    value_end: int
    end: int
    """Behind the semicolon, when there is one."""


@dataclass(frozen=True)
class CssRule:
    """A piece of a sheet: a style rule, a conditional group, a statement, or something unknown (key "")."""

    key: str
    start: int
    end: int
    source: bytes
    """With the comments in front of it."""
    leading_comments: bytes = b""
    """Those comments, up to the rule itself."""
    block_range: tuple[int, int] | None = None
    """From behind the opening to the closing brace."""
    declarations: tuple[CssDeclaration, ...] = ()
    rules: tuple["CssRule", ...] = ()
    is_opaque: bool = False
    """Holds something the grammar does not know, so its declarations may not be all of them."""

    @property
    def prelude(self) -> str:
        """What stands in front of the block, in one line."""
        text = self.source[len(self.leading_comments) :]
        inner = text[: self.block_range[0] - 1 - self.start] if self.block_range else text
        return " ".join(inner.decode("utf-8", "replace").split())

    @property
    def is_condition(self) -> bool:
        return self.key.startswith(CONDITIONAL_AT_RULES) and self.block_range is not None

    def iter_descendants(self) -> Iterator["CssRule"]:
        for rule in self.rules:
            yield rule
            yield from rule.iter_descendants()

    @property
    def rule_count(self) -> int:
        """How many rules adding this one adds."""
        return sum(rule.rule_count for rule in self.rules) if self.is_condition else 1


def parse_css(source: bytes) -> list[CssRule]:
    return list(_rules(source, Parser(_language).parse(source).root_node))


def find_rule(rules: list[CssRule] | tuple[CssRule, ...], path: tuple[str, ...]) -> CssRule | None:
    """The last rule at this path; a later rule wins in CSS too."""
    for rule in reversed(rules):
        if rule.key == path[0]:
            deeper = find_rule(rule.rules, path[1:]) if len(path) > 1 else rule
            if deeper is not None:
                return deeper
    return None


def check_balanced(css: str) -> None:
    """Refuse CSS that would swallow the rules behind it or end the style element."""
    if "</style" in css.lower():
        raise EditError("CSS must not contain a </style> tag.")
    expected: list[str] = []
    for token in _TOKEN.findall(css):
        if token in CLOSING_BRACKETS:
            expected.append(CLOSING_BRACKETS[token])
        elif token in CLOSING_BRACKETS.values() and (not expected or expected.pop() != token):
            raise EditError(f"There is a {token} too many in this CSS. Send complete rules.")
        elif token in ("'", '"'):
            raise EditError("A quoted text in this CSS is not closed. Send complete rules.")
    if expected or "/*" in re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL):
        missing = expected[-1] if expected else "*/"
        raise EditError(f"A {missing} is missing in this CSS. Send complete rules.")


def rule_key(prelude: str) -> str:
    """The same for preludes that differ in white space and comments only."""
    tokens = (token for token in _TOKEN.findall(prelude.strip()) if not token.startswith("/*"))
    words = [token if token[0] in "\"'" else token.strip() or " " for token in tokens]
    key = "".join(word for before, word in zip(["", *words], words, strict=False) if (before, word) != (" ", " "))
    return re.sub(r"\s*([:()])\s*", r"\1", key) if key.startswith("@") else key


def _rules(source: bytes, node: Node) -> Iterator[CssRule]:
    lead: int | None = None
    for child in node.children:
        if child.type.endswith("comment"):
            lead = child.start_byte if lead is None else lead
            continue
        if not child.is_named or child.type == "declaration":
            continue
        yield _rule(source, child, child.start_byte if lead is None else lead)
        lead = None


def _rule(source: bytes, node: Node, lead: int) -> CssRule:
    block = next((child for child in node.children if child.type in BLOCK_NODE_TYPES), None)
    prelude_end = block.start_byte if block else node.end_byte
    prelude = source[node.start_byte : prelude_end].decode("utf-8", "replace")
    known = block is not None or node.type.endswith("statement") or node.type == "at_rule"
    inside = block.children if block else []
    return CssRule(
        key=rule_key(prelude.rstrip("; \t\r\n")) if known else "",
        start=node.start_byte,
        end=node.end_byte,
        source=source[lead : node.end_byte],
        leading_comments=source[lead : node.start_byte],
        block_range=(block.start_byte + 1, block.end_byte - 1) if block else None,
        declarations=tuple(_declaration(source, child) for child in inside if child.type == "declaration"),
        rules=tuple(_rules(source, block)) if block else (),
        is_opaque=any(child.type == "ERROR" for child in inside),
    )


def _declaration(source: bytes, node: Node) -> CssDeclaration:
    colon = next(child for child in node.children if child.type == ":")
    name = source[node.start_byte : colon.start_byte].decode("utf-8", "replace").strip()
    end = node.end_byte
    value_end = end - 1 if source[end - 1 : end] == b";" else end
    value = source[colon.end_byte : value_end]
    start = value_end - len(value.lstrip())
    value_end = start + len(value.strip())
    return CssDeclaration(
        name=name if name.startswith("--") else name.lower(),
        value=value.strip().decode("utf-8", "replace"),
        start=node.start_byte,
        value_start=start,
        value_end=value_end,
        end=end,
    )
