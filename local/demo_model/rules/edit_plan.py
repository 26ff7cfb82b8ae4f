"""Planned calls of the editor's tools, and the text that goes with them."""

from dataclasses import dataclass
from typing import Any

from local.demo_model.rules.html_page import HEADING_TAGS, HtmlPage


@dataclass(frozen=True)
class ToolEdit:
    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class EditPlan:
    text: str
    calls: tuple[ToolEdit, ...]


def section_not_found_text(name: str, page: HtmlPage) -> str:
    headings = [heading.text for part in page.sections if (heading := part.find_first(*HEADING_TAGS))]
    listed = f" It has: {', '.join(headings)}." if headings else ""
    return f"I found no section called “{name}” on this page.{listed}"
