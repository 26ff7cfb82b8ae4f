"""A page, a sheet or an edit twice as large takes twice the time, whatever it is made of (decision 0234)."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata_client import HtmlDocument
from fermata_client.document.site_snapshot import build_site_snapshot
from fermata_client.html.edit_error import EditError
from fermata_client.tools.registry import READ_TOOLS, WRITE_TOOLS
from tests.client.html_strategies import PIECES
from tests.growth.growing_values import TEXTS, Growing, find_slow_values
from tests.growth.measure_growth import MAX_GROWTH, measure_growth
from tests.quick_suite_samples import sample_for_quick_suite

PAGE = (
    "<!doctype html>\n<title>t</title>\n<style>\n.a { top: 0 }\n</style>\n"
    "<main id=m>\n  <p class=a>x</p>\n%s\n</main>\n"
)
CSS_PIECES = ("/*", "/**/", "{", "}", ".a{top:0}", ".a{", "@media(", "@media(width>0px){", "@import ", "@")
CSS_PIECES += ("'", "(", "url(", "--a:1;", ",", "[")
"""Not `a:` again and again: recovery from so many errors takes the grammar itself too long (decision 0236)."""
FILLED = ("html", "css", "htmlPatch", "title", "classId", "value", "content")
CHARS = 8_000
NOTICEABLE_SECONDS = 0.1
PARTS = 5
"""Of the texts that a page or an edit is made with."""


def iter_growing_texts(pieces: tuple[str, ...]) -> Iterator[Growing]:
    for piece in dict.fromkeys((*pieces, *TEXTS)):
        yield Growing(repr(piece), lambda size, piece=piece: piece * (size // len(piece)))


PLAIN, NESTED = ".x%d { top: 0 }", ".x%d { top: 0; &:hover { left: 0 } }"
OLD_RULES = ("", PLAIN, NESTED, ".y%d { top: 0 }", "@media (width > 1px) { .x%d { top: 9px } }")
PUT_RULES = (PLAIN, NESTED, "@import 'x%d.css';", "@keyframes x%d { to { top: 0 } }")
GROUPS = ("%s", "@media (width > 1px) {\n%s\n}")


@pytest.mark.parametrize(
    ("old", "put_rule", "put_group", "operation"),
    sample_for_quick_suite(itertools.product(OLD_RULES, PUT_RULES, GROUPS, ["merge", "replace"]), every=7),
)
def test_rules_are_put_in_proportion_to_their_number(old: str, put_rule: str, put_group: str, operation: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        old_rules, rules = (
            "\n".join(rule % number for number in range(size)) if rule else "" for rule in (old, put_rule)
        )
        document = HtmlDocument.parse((PAGE.replace(".a { top: 0 }", old_rules) % "").encode(), path="index.html")
        return lambda: WRITE_TOOLS["applyCss"](document, {"css": put_group % rules, "operation": operation})

    assert measure_growth(prepare, 400, 400, noticeable_seconds=NOTICEABLE_SECONDS / 10) <= MAX_GROWTH


@pytest.mark.parametrize("gap", ["\n", "\n\n", " "])
def test_rules_are_deleted_in_proportion_to_their_number(gap: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        rules = gap.join(f".x{number} {{ top: 0 }}" for number in range(size))
        document = HtmlDocument.parse((PAGE.replace(".a { top: 0 }", rules) % "").encode(), path="index.html")
        selectors = [f".x{number}" for number in range(size)]
        return lambda: WRITE_TOOLS["applyCss"](document, {"operation": "delete", "selectors": selectors})

    assert measure_growth(prepare, 1_600, 1_600) <= MAX_GROWTH


def prepare_tokens(**members: Any) -> Callable[[int], Callable[[], object]]:
    document = HtmlDocument.parse((PAGE % "").encode(), path="index.html")

    def prepare(size: int) -> Callable[[], object]:
        tokens = [{"slug": f"c{number}", "lightValue": "#123456", **members} for number in range(size)]
        return lambda: WRITE_TOOLS["set_color_tokens"](document, {"tokens": tokens})

    return prepare


@pytest.mark.parametrize(
    "members", sample_for_quick_suite([{}, {"darkValue": "#fff"}, {"darkModeEnabled": False}], every=3)
)
def test_colours_are_set_in_proportion_to_their_number(members: dict[str, Any]) -> None:
    assert measure_growth(prepare_tokens(**members), 200, 200) <= MAX_GROWTH


def test_web_fonts_are_loaded_in_proportion_to_their_number() -> None:
    document = HtmlDocument.parse((PAGE % "").encode(), path="index.html")

    def prepare(size: int) -> Callable[[], object]:
        tokens = [{"name": f"f{number}", "googleFamily": f"Family {number}"} for number in range(size)]
        return lambda: WRITE_TOOLS["set_font_tokens"](document, {"tokens": tokens})

    assert measure_growth(prepare, 200, 400) <= MAX_GROWTH


def run_tools(document: HtmlDocument, tools: dict[str, Any], arguments: dict[str, Any]) -> None:
    for tool in tools.values():
        with contextlib.suppress(EditError):
            tool(document, arguments)


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
def test_a_page_is_read_in_proportion_to_its_length(part: int) -> None:
    def prepare(text: str) -> Callable[[], object]:
        source = (PAGE % text).encode()

        def read() -> None:
            document = HtmlDocument.parse(source, path="index.html")
            main = document.tree.find_first("main")
            run_tools(document, READ_TOOLS, {"nodeId": main.uid if main else "root"})
            build_site_snapshot(document)

        return read

    texts = itertools.islice(iter_growing_texts(tuple(PIECES)), part, None, PARTS)
    assert find_slow_values(texts, prepare, CHARS, NOTICEABLE_SECONDS) == []


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
@pytest.mark.parametrize("tool", sample_for_quick_suite(WRITE_TOOLS, every=3))
def test_an_edit_takes_time_in_proportion_to_its_texts(tool: str, part: int) -> None:
    document = HtmlDocument.parse((PAGE % "").encode(), path="index.html")
    main = document.tree.find_first("main")
    assert main is not None
    child = main.children[0]

    def prepare(text: str) -> Callable[[], object]:
        arguments: dict[str, Any] = dict.fromkeys(FILLED, text) | {
            "nodeId": child.uid,
            "parentId": main.uid,
            "newParentId": "root",
            "pageId": "index",
            "path": "a.css",
            "props": {"class": text, "text": text},
            "tokens": [{"slug": text, "lightValue": text}],
        }
        return lambda: run_tools(document, {tool: WRITE_TOOLS[tool]}, arguments)

    pieces = CSS_PIECES if tool == "applyCss" else tuple(PIECES)
    texts = itertools.islice(iter_growing_texts(pieces), part, None, PARTS)
    assert find_slow_values(texts, prepare, CHARS, NOTICEABLE_SECONDS) == []
