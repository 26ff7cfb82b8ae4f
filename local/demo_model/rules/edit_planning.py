"""Plan the edits of a page for an intent, and describe them."""

from typing import assert_never

from local.demo_model.rules import move_copy_rename, text_replacement
from local.demo_model.rules.edit_plan import EditPlan, ToolEdit, section_not_found_text
from local.demo_model.rules.html_page import HtmlNode, HtmlPage
from local.demo_model.rules.intents import AddSection, ChangeColor, Intent, RemoveSection, ReplaceText
from local.demo_model.rules.move_copy_rename import (
    MAIN_COLOR_WORDS,
    DuplicateSection,
    MoveSection,
    RenamePage,
    ShadeColor,
)
from local.demo_model.rules.page_style import detect_page_style, find_accent_color
from local.demo_model.rules.section_writer import write_section

_SELECTORS = {
    "heading": "h1, h2, h3",
    "headline": "h1",
    "title": "h1",
    "link": "a",
    "paragraph": "p",
    "text": "body",
    "body": "body",
    "background": "body",
    "menu": "nav",
    "navigation": "nav",
}
_PAST = {"add": "added", "write": "wrote", "make": "made"}


def plan_edits(intent: Intent, page: HtmlPage) -> EditPlan | str:
    """Plan the edits, or say in a sentence why there are none."""
    match intent:
        case AddSection():
            return _add(intent, page)
        case ReplaceText():
            return text_replacement.plan_text_replacement(intent, page)
        case RemoveSection():
            return _remove(intent, page)
        case ChangeColor():
            return _paint(intent, page)
        case MoveSection() | DuplicateSection() | RenamePage() | ShadeColor():
            return move_copy_rename.plan_arrangement(intent, page)
        case _:
            assert_never(intent)


def describe_intent(intent: Intent) -> str:
    match intent:
        case AddSection():
            return f"add a section about {intent.heading or intent.topic}"
        case ReplaceText():
            return f"write “{intent.new}” instead of " + (f"“{intent.old}”" if intent.old else _aim(intent))
        case RemoveSection():
            return f"remove the {intent.name} section"
        case ChangeColor():
            return f"make the {'background of the ' if intent.background else ''}{intent.what} {intent.colour}"
        case MoveSection() | DuplicateSection() | RenamePage() | ShadeColor():
            return move_copy_rename.describe_arrangement(intent)
        case _:
            assert_never(intent)


def describe_done_intent(intent: Intent) -> str:
    verb, _, rest = describe_intent(intent).partition(" ")
    return f"{_PAST.get(verb, verb + 'd')} {rest}"


def _add(intent: AddSection, page: HtmlPage) -> EditPlan | str:
    piece = write_section(intent, page)
    parent, index = page.content_end()
    if intent.side == "top":
        index = _after_header(parent)
    if intent.anchor:
        anchor = page.find_section(intent.anchor)
        if anchor is None or anchor.parent is None:
            return section_not_found_text(intent.anchor, page)
        parent, index = anchor.parent, anchor.sibling_index() + (intent.side == "after")
    if not parent.uid:
        return "The page has no element I could put a section into."
    place = {"parentId": parent.uid} | ({} if index is None else {"index": index})
    text = f"I add “{piece.heading}”, with the classes and colours the page already has."
    return EditPlan(
        text, (ToolEdit("insertHtml", place | {"html": piece.html}), ToolEdit("applyCss", {"css": piece.css}))
    )


def _remove(intent: RemoveSection, page: HtmlPage) -> EditPlan | str:
    node = page.find_section(intent.name)
    if node is None:
        return section_not_found_text(intent.name, page)
    return EditPlan(f"I remove the {intent.name} section.", (ToolEdit("deleteNode", {"nodeId": node.uid}),))


def _paint(intent: ChangeColor, page: HtmlPage) -> EditPlan | str:
    selector, name = _selector(intent, page)
    if not selector:
        return f"I do not know what “{intent.what}” is on this page."
    css = f"{selector} {{\n  {name}: {intent.colour};\n}}"
    return EditPlan(f"I set {name} of {selector} to {intent.colour}.", (ToolEdit("applyCss", {"css": css}),))


def _selector(intent: ChangeColor, page: HtmlPage) -> tuple[str, str]:
    """Get the selector and the property to change: a custom property, a kind of element, or a named section."""
    words = [word.removesuffix("s") for word in intent.what.lower().split()]
    name = "background" if intent.background or words[-1:] == ["background"] else "color"
    if intent.what.startswith("--"):
        return (":root", intent.what) if intent.what in page.variables else ("", "")
    if accent := find_accent_color(page) if MAIN_COLOR_WORDS & set(words) else "":
        return ":root", accent.removeprefix("var(").removesuffix(")")
    if words[-1:] == ["button"]:
        button_classes = detect_page_style(page).button_class.split()
        return (f".{button_classes[0]}" if button_classes else "button"), "background" if button_classes else name
    kind_selector = next((_SELECTORS[word] for word in reversed(words) if word in _SELECTORS), "")
    return kind_selector or _called(intent.what, page), name


def _called(what: str, page: HtmlPage) -> str:
    if page.root.find_first(what):
        return what
    node = page.find_section(what)
    if node is None:
        return ""
    if node.attributes.get("id"):
        return f"#{node.attributes['id']}"
    return f".{node.classes[-1]}" if node.classes else node.tag


def _after_header(parent: HtmlNode) -> int:
    headers = [child.sibling_index() + 1 for child in parent.children if child.tag == "header"]
    return max(headers, default=0)


def _aim(intent: ReplaceText) -> str:
    return " ".join(intent.what.split()) or "the heading"
