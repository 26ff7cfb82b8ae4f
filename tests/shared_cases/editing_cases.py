"""Run the table of edits on an executor: the same calls on the same page give the same HTML and CSS everywhere."""

from collections.abc import Callable
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from tests.shared_cases.normalized_html import normalize_css, normalize_html

Execute = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Carries out a tool, and returns its output."""


def check_editing_case(case: dict[str, Any], execute: Execute) -> None:
    """Carry out the calls of a case, and compare their results and the page with what the table says."""
    for call in case["calls"]:
        result = execute(call["tool"], resolve_nodes(call["input"], execute))
        check_result(call, result)
    html, css = read_page(execute)
    if "html" in case:
        assert normalize_html(html) == normalize_html(case["html"])
    if "css" in case:
        assert normalize_css(css) == normalize_css(case["css"])
    assert all(text in css.replace(" ", "") for text in case.get("contains", []))


def check_result(call: dict[str, Any], result: dict[str, Any]) -> None:
    if "error" in call:
        assert not result["ok"]
        assert call["error"] in result["error"]
        return
    assert result["ok"], result
    for name, expected in call.get("data", {}).items():
        value = result["data"][name]
        assert expected in value if name == "note" else value == expected


def resolve_nodes(tool_input: dict[str, Any], execute: Execute) -> dict[str, Any]:
    """Replace `@selector` by the node id of the first element that the selector finds."""

    def resolve(value: Any) -> Any:
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        html = execute("read_document", {})["data"]["html"]
        found = LexborHTMLParser(html).css_first(value[1:])
        assert found is not None, f"{value} is not in {html}"
        return found.attributes["uid"]

    names = {"nodeId", "parentId", "newParentId"}
    return {name: resolve(value) if name in names else value for name, value in tool_input.items()}


def read_page(execute: Execute) -> tuple[str, str]:
    """Return the HTML of the body without node ids, and the CSS of the page."""
    data = execute("read_document", {})["data"]
    parser = LexborHTMLParser(data["html"])
    for node in parser.css("[uid]"):
        del node.attrs["uid"]
    body = parser.body
    assert body is not None
    return body.inner_html or "", data["css"]
