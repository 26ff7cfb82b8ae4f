"""Plan the replacement of a text, wherever it occurs, or of one heading. Markup around it is kept."""

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from local.demo_model.rules.edit_plan import EditPlan, ToolEdit
from local.demo_model.rules.html_page import HEADING_TAGS, HtmlNode, HtmlPage
from local.demo_model.rules.intents import ReplaceText

_PHRASES = """a abbr b bdi bdo br cite code data del dfn em i img ins kbd label mark q s samp small span strong sub sup
    time u var wbr"""
PHRASING_TAGS = frozenset(_PHRASES.split())
"""Elements that are part of a text and can be rewritten with it."""
HIDDEN_TAGS = frozenset({"style", "script", "title", "template", "svg", "textarea"})
MAX_LISTED_ELEMENTS = 5
_HEADING_WORDS = re.compile(
    r"\b(?:heading|headline|title|main|page|text|of|to|the|from|in|website|site)\b", re.IGNORECASE
)


def plan_text_replacement(intent: ReplaceText, page: HtmlPage) -> EditPlan | str:
    if intent.old is None:
        return _plan_heading(intent, page)
    headings = page.root.find_all(*HEADING_TAGS) if intent.what else []
    for pattern in _patterns(intent.old):
        for roots in (headings, [page.root]):
            elements, unreachable = _find_elements(pattern, roots)
            if elements:
                return _plan_elements(pattern, intent.new, elements, unreachable)
            if unreachable:
                return f"“{intent.old}” is in one element with other parts, which I would have to rewrite."
    if any(pattern.search(_visible_text(page.root)) for pattern in _patterns(intent.old)):
        return f"“{intent.old}” spans several elements here, so I do not change it. Name the words of one of them."
    return f"I found the text “{intent.old}” nowhere on this page."


def _patterns(old: str) -> Iterator[re.Pattern[str]]:
    """Iterate over patterns: whole words, then within words, then whole words in any case."""
    loose = r"\s+".join(re.escape(word) for word in old.split())
    whole = rf"(?<!\w){loose}(?!\w)"
    yield re.compile(whole)
    yield re.compile(loose)
    yield re.compile(whole, re.IGNORECASE)


def _find_elements(pattern: re.Pattern[str], roots: Iterable[HtmlNode]) -> tuple[list[HtmlNode], int]:
    """Find the elements to rewrite, none inside another, and count the occurrences that are in no such element."""
    elements, unreachable, waiting = [], 0, list(roots)
    while waiting:
        node = waiting.pop(0)
        if node.tag in HIDDEN_TAGS:
            continue
        own = sum(len(pattern.findall(run)) for run in node.content_runs if isinstance(run, str))
        if own and node.uid and has_only_text(node):
            elements.append(node)
            continue
        unreachable += own
        waiting = [*node.children, *waiting]
    return elements, unreachable


def has_only_text(node: HtmlNode) -> bool:
    """Return whether the element contains only text, so that it can be rewritten."""
    return all(inner.tag in PHRASING_TAGS for inner in node.iter_descendants())


def _plan_elements(pattern: re.Pattern[str], new: str, elements: list[HtmlNode], unreachable: int) -> EditPlan:
    def change(text: str) -> str:
        return pattern.sub(lambda _: new, text)

    calls = tuple(
        ToolEdit("replaceNodeHtml", {"nodeId": node.uid, "html": _write_content(node, change)}) for node in elements
    )
    if len(elements) == 1:
        text = f"I change “{_visible_text(elements[0])}” to “{_visible_text(elements[0], change)}”."
    else:
        listed = ", ".join(f"“{_visible_text(node, change)}”" for node in elements[:MAX_LISTED_ELEMENTS])
        more = f" and {len(elements) - MAX_LISTED_ELEMENTS} more" if len(elements) > MAX_LISTED_ELEMENTS else ""
        text = f"I change it in {len(elements)} elements: {listed}{more}."
    if unreachable:
        text += f" Where it is in one element with other parts, I leave it: {unreachable} more."
    return EditPlan(text, calls)


def _write_content(node: HtmlNode, change: Callable[[str], str]) -> str:
    """Write the content of an element with its text changed."""
    return "".join(
        escape(change(run), quote=False)
        if isinstance(run, str)
        else run.start_tag + _write_content(run, change) + run.end_tag
        for run in node.content_runs
    )


def _visible_text(node: HtmlNode, change: Callable[[str], str] = lambda text: text) -> str:
    """Get the text in reading order, on one line."""

    def said(one: HtmlNode) -> Iterator[str]:
        for run in one.content_runs:
            if isinstance(run, str):
                yield change(run)
            elif run.tag not in HIDDEN_TAGS:
                yield from said(run)

    return " ".join("".join(said(node)).split())


def _plan_heading(intent: ReplaceText, page: HtmlPage) -> EditPlan | str:
    node = _find_plan_heading(intent, page)
    if node is None:
        return "I found such a heading nowhere on this page."
    if not has_only_text(node):
        return (
            f"The <{node.tag}> on this page holds other parts of it, perhaps because it is not closed. I leave it as "
            "it is: rewriting it would remove them."
        )
    edit = ToolEdit("replaceNodeHtml", {"nodeId": node.uid, "html": escape(intent.new, quote=False)})
    return EditPlan(f"I change “{_visible_text(node)}” to “{intent.new}”.", (edit,))


def _find_plan_heading(intent: ReplaceText, page: HtmlPage) -> HtmlNode | None:
    """Find the heading: that of a named section, the first of a named level, else the page's main heading."""
    level = re.search(r"\bh[1-6]\b", intent.what, re.IGNORECASE)
    if level:
        return page.root.find_first(level[0].lower())
    name = _HEADING_WORDS.sub(" ", intent.what)
    section = page.find_section(name) if name.strip() else None
    if section:
        return section.find_first(*HEADING_TAGS)
    return page.root.find_first("h1") or page.content_root.find_first(*HEADING_TAGS)
