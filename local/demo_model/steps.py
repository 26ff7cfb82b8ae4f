"""What the demo model does with a page: calls of the editor's tools, and the sentence that goes with them."""

from dataclasses import dataclass
from typing import Any

from local.demo_model.pages import HEADINGS, Page


@dataclass(frozen=True)
class Edit:
    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Steps:
    text: str
    calls: tuple[Edit, ...]


def unknown(name: str, page: Page) -> str:
    there = [heading.text for part in page.sections if (heading := part.first(*HEADINGS))]
    listed = f" It has: {', '.join(there)}." if there else ""
    return f"I found no section called “{name}” on this page.{listed}"
