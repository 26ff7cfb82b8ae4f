"""Turns an intent into edits of one page."""

from typing import assert_never

from local.demo_model import arranging, retexting
from local.demo_model.arranging import MAIN, Copy, Move, Rename, Shade
from local.demo_model.intents import Add, Intent, Paint, Remove, Retext
from local.demo_model.kit import accent_of, kit_of
from local.demo_model.pages import Node, Page
from local.demo_model.sections import write
from local.demo_model.steps import Edit, Steps, unknown

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


def steps(intent: Intent, page: Page) -> Steps | str:
    """The edits, or a sentence why there are none."""
    match intent:
        case Add():
            return _add(intent, page)
        case Retext():
            return retexting.steps(intent, page)
        case Remove():
            return _remove(intent, page)
        case Paint():
            return _paint(intent, page)
        case Move() | Copy() | Rename() | Shade():
            return arranging.steps(intent, page)
        case _:
            assert_never(intent)


def plan(intent: Intent) -> str:
    match intent:
        case Add():
            return f"add a section about {intent.heading or intent.topic}"
        case Retext():
            return f"write “{intent.new}” instead of " + (f"“{intent.old}”" if intent.old else _aim(intent))
        case Remove():
            return f"remove the {intent.name} section"
        case Paint():
            return f"make the {'background of the ' if intent.background else ''}{intent.what} {intent.colour}"
        case Move() | Copy() | Rename() | Shade():
            return arranging.plan(intent)
        case _:
            assert_never(intent)


def past(intent: Intent) -> str:
    verb, _, rest = plan(intent).partition(" ")
    return f"{_PAST.get(verb, verb + 'd')} {rest}"


def _add(intent: Add, page: Page) -> Steps | str:
    piece = write(intent, page)
    parent, index = page.end_of_content()
    if intent.side == "top":
        index = _after_header(parent)
    if intent.anchor:
        anchor = page.section_called(intent.anchor)
        if anchor is None or anchor.parent is None:
            return unknown(intent.anchor, page)
        parent, index = anchor.parent, anchor.position() + (intent.side == "after")
    if not parent.uid:
        return "The page has no element I could put a section into."
    place = {"parentId": parent.uid} | ({} if index is None else {"index": index})
    text = f"I add “{piece.heading}”, with the classes and colours the page already has."
    return Steps(text, (Edit("insertHtml", place | {"html": piece.html}), Edit("applyCss", {"css": piece.css})))


def _remove(intent: Remove, page: Page) -> Steps | str:
    node = page.section_called(intent.name)
    if node is None:
        return unknown(intent.name, page)
    return Steps(f"I remove the {intent.name} section.", (Edit("deleteNode", {"nodeId": node.uid}),))


def _paint(intent: Paint, page: Page) -> Steps | str:
    selector, name = _selector(intent, page)
    if not selector:
        return f"I do not know what “{intent.what}” is on this page."
    css = f"{selector} {{\n  {name}: {intent.colour};\n}}"
    return Steps(f"I set {name} of {selector} to {intent.colour}.", (Edit("applyCss", {"css": css}),))


def _selector(intent: Paint, page: Page) -> tuple[str, str]:
    """What to paint, and which property: a custom property, a kind of element, or something called so."""
    words = [word.removesuffix("s") for word in intent.what.lower().split()]
    name = "background" if intent.background or words[-1:] == ["background"] else "color"
    if intent.what.startswith("--"):
        return (":root", intent.what) if intent.what in page.variables else ("", "")
    if accent := accent_of(page) if MAIN & set(words) else "":
        return ":root", accent.removeprefix("var(").removesuffix(")")
    if words[-1:] == ["button"]:
        own = kit_of(page).button.split()
        return (f".{own[0]}" if own else "button"), "background" if own else name
    known = next((_SELECTORS[word] for word in reversed(words) if word in _SELECTORS), "")
    return known or _called(intent.what, page), name


def _called(what: str, page: Page) -> str:
    if page.root.first(what):
        return what
    node = page.section_called(what)
    if node is None:
        return ""
    if node.attributes.get("id"):
        return f"#{node.attributes['id']}"
    return f".{node.classes[-1]}" if node.classes else node.tag


def _after_header(parent: Node) -> int:
    headers = [child.position() + 1 for child in parent.children if child.tag == "header"]
    return max(headers, default=0)


def _aim(intent: Retext) -> str:
    return " ".join(intent.what.split()) or "the heading"
