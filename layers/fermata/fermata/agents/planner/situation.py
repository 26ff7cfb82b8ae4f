"""Describe the page that the user sees, and what the editor has said about the site: the part that changes."""

import json
from typing import Any

from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.domain.json_shortening import shorten_text
from fermata.plans.editor_state import EditorState, read_editor_state
from fermata.tools.tool_names import ToolNaming

_MAX_PAGES = 60
_MAX_PAGE_CHARS = 14_000
_MAX_NOTE_CHARS = 2000


def situation(snapshot: Any, _naming: ToolNaming) -> str:
    """Return the lines about the user's page, the other pages, and the site."""
    editor = read_editor_state(snapshot)
    members = snapshot if isinstance(snapshot, dict) else {}
    lines = [f"Page: the user sees {to_single_line(editor.slug)}.", *_describe_selection(editor)]
    pages = members.get("pages")
    if isinstance(pages, list):
        lines.append(f"Pages: {join_first_items([_describe_page(page) for page in pages], _MAX_PAGES)}")
    if isinstance(members.get("page"), dict):
        page = json.dumps(members["page"], ensure_ascii=False, separators=(",", ":"))
        lines.append(f"The page: {shorten_text(page, _MAX_PAGE_CHARS)}")
    if editor.block_types:
        lines.append(f"Block types of this site: {join_first_items(editor.block_types, _MAX_PAGES)}")
    notes = [f"{to_single_line(name)}: {_describe_note(note)}" for name, note in editor.notes.items()]
    return "\n".join([*lines, *notes])


def _describe_selection(editor: EditorState) -> list[str]:
    if not editor.active_block_id:
        return []
    kind = f" ({to_single_line(editor.active_block_type)})" if editor.active_block_type else ""
    path = f", at {to_single_line(editor.active_editable_path)}" if editor.active_editable_path else ""
    return [f"Selected block: {to_single_line(editor.active_block_id)}{kind}{path}"]


def _describe_page(page: Any) -> str:
    if not isinstance(page, dict):
        return to_single_line(str(page))
    return to_single_line(f"{page.get('slug')} ({page.get('title')})")


def _describe_note(note: Any) -> str:
    text = note if isinstance(note, str) else json.dumps(note, ensure_ascii=False)
    return to_single_line(text, _MAX_NOTE_CHARS)
