"""New words for old ones: everywhere the old ones stand, or in one heading. Markup around them stays."""

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from local.demo_model.intents import Retext
from local.demo_model.pages import HEADINGS, Node, Page
from local.demo_model.steps import Edit, Steps

_PHRASES = """a abbr b bdi bdo br cite code data del dfn em i img ins kbd label mark q s samp small span strong sub sup
    time u var wbr"""
PHRASES = frozenset(_PHRASES.split())
"""Elements that are part of a text, and may be written anew with it."""
SILENT = frozenset({"style", "script", "title", "template", "svg", "textarea"})
SHOWN = 5
_HEADING_WORDS = re.compile(
    r"\b(?:heading|headline|title|main|page|text|of|to|the|from|in|website|site)\b", re.IGNORECASE
)


def steps(intent: Retext, page: Page) -> Steps | str:
    if intent.old is None:
        return _heading(intent, page)
    headings = page.root.all(*HEADINGS) if intent.what else []
    for pattern in _patterns(intent.old):
        for roots in (headings, [page.root]):
            holders, stuck = _holders(pattern, roots)
            if holders:
                return _replaced(pattern, intent.new, holders, stuck)
            if stuck:
                return f"“{intent.old}” stands beside other parts in one element, which I would have to write anew."
    if any(pattern.search(_words(page.root)) for pattern in _patterns(intent.old)):
        return f"“{intent.old}” goes over several elements here, so I leave it as it is. Name the words of one of them."
    return f"I found the text “{intent.old}” nowhere on this page."


def _patterns(old: str) -> Iterator[re.Pattern[str]]:
    """As whole words, then within words, then in any case."""
    loose = r"\s+".join(re.escape(word) for word in old.split())
    whole = rf"(?<!\w){loose}(?!\w)"
    yield re.compile(whole)
    yield re.compile(loose)
    yield re.compile(whole, re.IGNORECASE)


def _holders(pattern: re.Pattern[str], roots: Iterable[Node]) -> tuple[list[Node], int]:
    """The elements to write anew, none within another, and how many places no such element can be found for."""
    holders, stuck, waiting = [], 0, list(roots)
    while waiting:
        node = waiting.pop(0)
        if node.tag in SILENT:
            continue
        own = sum(len(pattern.findall(run)) for run in node.runs if isinstance(run, str))
        if own and node.uid and is_plain(node):
            holders.append(node)
            continue
        stuck += own
        waiting = [*node.children, *waiting]
    return holders, stuck


def is_plain(node: Node) -> bool:
    """Holds words only, so that it can be written anew."""
    return all(inner.tag in PHRASES for inner in node.walk())


def _replaced(pattern: re.Pattern[str], new: str, holders: list[Node], stuck: int) -> Steps:
    def change(text: str) -> str:
        return pattern.sub(lambda _: new, text)

    calls = tuple(Edit("replaceNodeHtml", {"nodeId": node.uid, "html": _inner(node, change)}) for node in holders)
    if len(holders) == 1:
        text = f"I change “{_words(holders[0])}” to “{_words(holders[0], change)}”."
    else:
        listed = ", ".join(f"“{_words(node, change)}”" for node in holders[:SHOWN])
        more = f" and {len(holders) - SHOWN} more" if len(holders) > SHOWN else ""
        text = f"I change it in {len(holders)} elements: {listed}{more}."
    if stuck:
        text += f" Where it stands beside other parts in one element, I leave it: {stuck} more."
    return Steps(text, calls)


def _inner(node: Node, change: Callable[[str], str]) -> str:
    """The content of an element as it is written, with other words."""
    return "".join(
        escape(change(run), quote=False) if isinstance(run, str) else run.start + _inner(run, change) + run.end
        for run in node.runs
    )


def _words(node: Node, change: Callable[[str], str] = lambda text: text) -> str:
    """The text in the order in which it is read, in one line."""

    def said(one: Node) -> Iterator[str]:
        for run in one.runs:
            if isinstance(run, str):
                yield change(run)
            elif run.tag not in SILENT:
                yield from said(run)

    return " ".join("".join(said(node)).split())


def _heading(intent: Retext, page: Page) -> Steps | str:
    node = _heading_meant(intent, page)
    if node is None:
        return "I found such a heading nowhere on this page."
    if not is_plain(node):
        return (
            f"The <{node.tag}> on this page holds other parts of it, perhaps because it is not closed. I leave it as "
            "it is: writing it anew would take them away."
        )
    edit = Edit("replaceNodeHtml", {"nodeId": node.uid, "html": escape(intent.new, quote=False)})
    return Steps(f"I change “{_words(node)}” to “{intent.new}”.", (edit,))


def _heading_meant(intent: Retext, page: Page) -> Node | None:
    """`the pricing heading` is the one of that section; `the h2` is the first; else the page's main one."""
    level = re.search(r"\bh[1-6]\b", intent.what, re.IGNORECASE)
    if level:
        return page.root.first(level[0].lower())
    name = _HEADING_WORDS.sub(" ", intent.what)
    section = page.section_called(name) if name.strip() else None
    if section:
        return section.first(*HEADINGS)
    return page.root.first("h1") or page.container.first(*HEADINGS)
