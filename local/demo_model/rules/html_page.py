"""Parse a page as `read_document` returns it: HTML whose elements have a `uid`, and its CSS."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_CONTAINER_TAGS = {"html", "div", "section", "article", "form", "aside", "header", "footer", "nav"}
"""What may contain a section where a page has neither main nor body. A paragraph or a list may not."""
_VARIABLE = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+)")

_UID = re.compile(r"""\s+uid=(?:"[^"]*"|'[^']*'|[^\s>]+)""")


@dataclass(eq=False)
class HtmlNode:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: "HtmlNode | None" = None
    children: "list[HtmlNode]" = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The element's own text, between its children."""
    content_runs: "list[HtmlNode | str]" = field(default_factory=list)
    """Children and text in document order."""
    start_tag: str = ""
    """The start tag as written, without the `uid`."""

    @property
    def end_tag(self) -> str:
        return "" if self.tag in _VOID else f"</{self.tag}>"

    @property
    def uid(self) -> str:
        return self.attributes.get("uid", "")

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        texts = [*self.texts, *(child.text for child in self.children)]
        return " ".join(" ".join(texts).split())

    def iter_descendants(self) -> "Iterator[HtmlNode]":
        for child in self.children:
            yield child
            yield from child.iter_descendants()

    def find_all(self, *tags: str) -> "list[HtmlNode]":
        return [node for node in self.iter_descendants() if node.tag in tags]

    def find_first(self, *tags: str) -> "HtmlNode | None":
        return next((node for node in self.iter_descendants() if node.tag in tags), None)

    def sibling_index(self) -> int:
        """Get its index among its parent's elements."""
        return self.parent.children.index(self) if self.parent else 0


@dataclass(frozen=True)
class HtmlPage:
    root: HtmlNode
    css: str
    title: str = ""
    id: str = ""
    is_tidy: bool = True
    """Whether every element is closed correctly."""

    @property
    def variables(self) -> dict[str, str]:
        """Custom properties and their values. The last definition wins, as in CSS."""
        return {name: value.strip() for name, value in _VARIABLE.findall(self.css)}

    @property
    def content_root(self) -> HtmlNode:
        """The element that contains the sections."""
        containers = (node for node in self.root.children if node.tag in _CONTAINER_TAGS)
        return self.root.find_first("main") or self.root.find_first("body") or next(containers, self.root)

    @property
    def sections(self) -> list[HtmlNode]:
        sections = self.root.find_all("section")
        return sections or [node for node in self.content_root.children if node.find_first(*HEADING_TAGS)]

    def used_names(self) -> set[str]:
        """Get every class and id in use, also in the CSS alone."""
        used = {
            name for node in self.root.iter_descendants() for name in [*node.classes, node.attributes.get("id", "")]
        }
        return used | set(re.findall(r"[.#]([A-Za-z_][\w-]*)", self.css))

    def content_end(self) -> tuple[HtmlNode, int | None]:
        """Get the parent and index for a new section at the end, before a footer if there is one."""
        home = self.content_root
        footers = [child for child in home.children if child.tag == "footer"]
        return home, footers[0].sibling_index() if footers else None

    def find_section(self, name: str) -> HtmlNode | None:
        """Find the part of the page with that name: by its id or class, its tag, or its heading."""
        words = {strip_plural(word) for word in re.findall(r"\w+", name.lower())} - {
            "the",
            "a",
            "section",
            "block",
            "area",
        }
        parts = [*self.sections, *self.root.find_all("header", "footer", "nav", "aside", "article")]
        scored = [(score, -index, node) for index, node in enumerate(parts) if (score := _likeness(node, words))]
        return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def strip_plural(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def parse_page(html: str, css: str, title: str = "", page_id: str = "") -> HtmlPage:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    css = css + "\n" + "\n".join(node.text for node in reader.root.find_all("style"))
    return HtmlPage(reader.root, css, title, page_id, reader.is_tidy)


def _likeness(node: HtmlNode, words: set[str]) -> int:
    if not words or not node.uid:
        return 0
    labels = [*node.classes, node.attributes.get("id", ""), node.attributes.get("aria-label", "")]
    labelled = {strip_plural(word) for label in labels for word in re.findall(r"[a-z0-9]+", label.lower())}
    heading = node.find_first(*HEADING_TAGS)
    headed = {strip_plural(word) for word in re.findall(r"\w+", heading.text.lower())} if heading else set()
    if words <= labelled:
        return 4
    if node.tag in words:
        return 3
    return 2 if words <= headed else int(words <= labelled | headed)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = HtmlNode("#page")
        self._open = [self.root]
        self._is_tidy = True

    @property
    def is_tidy(self) -> bool:
        return self._is_tidy and len(self._open) == 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = HtmlNode(tag, {name: value or "" for name, value in attrs}, self._open[-1])
        node.start_tag = _UID.sub("", self.get_starttag_text() or f"<{tag}>", count=1)
        self._open[-1].children.append(node)
        self._open[-1].content_runs.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        depth = next((at for at in range(len(self._open) - 1, 0, -1) if self._open[at].tag == tag), 0)
        self._is_tidy = self._is_tidy and depth == len(self._open) - 1 and depth > 0
        if depth:
            del self._open[depth:]

    def handle_data(self, data: str) -> None:
        self._open[-1].texts.append(data)
        self._open[-1].content_runs.append(data)
