"""The rules of a style sheet with their byte positions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_css
from tree_sitter import Language, Node, Parser

from fermata_client.html.cannot import CannotDo

BLOCKS = frozenset({"block", "keyframe_block_list"})
CONDITIONS = ("@media", "@supports", "@container", "@layer", "@scope", "@starting-style")
BRACKETS = {"{": "}", "(": ")", "[": "]"}

_language = Language(tree_sitter_css.language())
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\.|\s*[>+~,]\s*|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class Declaration:
    name: str
    value: str
    start: int
    value_start: int
    value_end: int
    end: int
    """Behind the semicolon, when there is one."""


@dataclass(frozen=True)
class Rule:
    """A piece of a sheet: a style rule, a conditional group, a statement, or something unknown (key "")."""

    key: str
    start: int
    end: int
    raw: bytes
    """With the comments in front of it."""
    lead: bytes = b""
    """Those comments, up to the rule itself."""
    block: tuple[int, int] | None = None
    """From behind the opening to the closing brace."""
    declarations: tuple[Declaration, ...] = ()
    rules: tuple["Rule", ...] = ()
    opaque: bool = False
    """Holds something the grammar does not know, so its declarations may not be all of them."""

    @property
    def prelude(self) -> str:
        """What stands in front of the block, in one line."""
        text = self.raw[len(self.lead) :]
        inner = text[: self.block[0] - 1 - self.start] if self.block else text
        return " ".join(inner.decode("utf-8", "replace").split())

    @property
    def is_condition(self) -> bool:
        return self.key.startswith(CONDITIONS) and self.block is not None

    def everything(self) -> Iterator["Rule"]:
        for rule in self.rules:
            yield rule
            yield from rule.everything()

    @property
    def size(self) -> int:
        """How many rules adding this one adds."""
        return sum(rule.size for rule in self.rules) if self.is_condition else 1


def read(source: bytes) -> list[Rule]:
    return list(_rules(source, Parser(_language).parse(source).root_node))


def find(rules: list[Rule] | tuple[Rule, ...], path: tuple[str, ...]) -> Rule | None:
    """The last rule at this path; a later rule wins in CSS too."""
    for rule in reversed(rules):
        if rule.key == path[0]:
            deeper = find(rule.rules, path[1:]) if len(path) > 1 else rule
            if deeper is not None:
                return deeper
    return None


def check_balance(css: str) -> None:
    """Refuse CSS that would swallow the rules behind it or end the style element."""
    if "</style" in css.lower():
        raise CannotDo("CSS must not contain a </style> tag.")
    expected: list[str] = []
    for token in _TOKEN.findall(css):
        if token in BRACKETS:
            expected.append(BRACKETS[token])
        elif token in BRACKETS.values() and (not expected or expected.pop() != token):
            raise CannotDo(f"There is a {token} too many in this CSS. Send complete rules.")
        elif token in ("'", '"'):
            raise CannotDo("A quoted text in this CSS is not closed. Send complete rules.")
    if expected or "/*" in re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL):
        missing = expected[-1] if expected else "*/"
        raise CannotDo(f"A {missing} is missing in this CSS. Send complete rules.")


def key_of(prelude: str) -> str:
    """The same for preludes that differ in white space and comments only."""
    tokens = (token for token in _TOKEN.findall(prelude.strip()) if not token.startswith("/*"))
    words = [token if token[0] in "\"'" else token.strip() or " " for token in tokens]
    key = "".join(word for before, word in zip(["", *words], words, strict=False) if (before, word) != (" ", " "))
    return re.sub(r"\s*([:()])\s*", r"\1", key) if key.startswith("@") else key


def _rules(source: bytes, node: Node) -> Iterator[Rule]:
    lead: int | None = None
    for child in node.children:
        if child.type.endswith("comment"):
            lead = child.start_byte if lead is None else lead
            continue
        if not child.is_named or child.type == "declaration":
            continue
        yield _rule(source, child, child.start_byte if lead is None else lead)
        lead = None


def _rule(source: bytes, node: Node, lead: int) -> Rule:
    block = next((child for child in node.children if child.type in BLOCKS), None)
    prelude_end = block.start_byte if block else node.end_byte
    prelude = source[node.start_byte : prelude_end].decode("utf-8", "replace")
    known = block is not None or node.type.endswith("statement") or node.type == "at_rule"
    inside = block.children if block else []
    return Rule(
        key=key_of(prelude.rstrip("; \t\r\n")) if known else "",
        start=node.start_byte,
        end=node.end_byte,
        raw=source[lead : node.end_byte],
        lead=source[lead : node.start_byte],
        block=(block.start_byte + 1, block.end_byte - 1) if block else None,
        declarations=tuple(_declaration(source, child) for child in inside if child.type == "declaration"),
        rules=tuple(_rules(source, block)) if block else (),
        opaque=any(child.type == "ERROR" for child in inside),
    )


def _declaration(source: bytes, node: Node) -> Declaration:
    colon = next(child for child in node.children if child.type == ":")
    name = source[node.start_byte : colon.start_byte].decode("utf-8", "replace").strip()
    end = node.end_byte
    value_end = end - 1 if source[end - 1 : end] == b";" else end
    value = source[colon.end_byte : value_end]
    start = value_end - len(value.lstrip())
    value_end = start + len(value.strip())
    return Declaration(
        name=name if name.startswith("--") else name.lower(),
        value=value.strip().decode("utf-8", "replace"),
        start=node.start_byte,
        value_start=start,
        value_end=value_end,
        end=end,
    )
