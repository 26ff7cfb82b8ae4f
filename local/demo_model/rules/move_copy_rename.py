"""Parse and plan changes of existing content: move or duplicate a section, rename the page, shade a color."""

import colorsys
import re
from dataclasses import dataclass
from typing import assert_never

from local.demo_model.rules.edit_plan import EditPlan, ToolEdit, section_not_found_text
from local.demo_model.rules.html_page import HtmlPage
from local.demo_model.rules.page_style import find_accent_color

_NAMED = r"(?: the| our)? (?P<name>[\w '-]+?)(?: section)?"
_MOVE = re.compile(
    rf"\b(?:move|put|bring)\b{_NAMED} (?:(?P<side>before|above|after|below|under|behind)(?: the)? "
    r"(?P<anchor>[\w '-]+?)(?: section)?|(?:to|at) the (?P<end>top|start|beginning|bottom|end)\b.*)\s*[.!?]*$",
    re.I,
)
_COPY = re.compile(rf"\b(?:duplicate|copy|clone|repeat)\b{_NAMED}(?: (?P<times>twice|\d+ times))?\s*[.!?]*$", re.I)
_RENAME = re.compile(r"\brename (?:the|this|our) (?:page|site|website)\b(?: to| as)? *:? *(?P<new>.+)", re.I | re.S)
_SHADE = re.compile(
    r"\b(?:make|turn)\b(?: the| our)? (?P<what>[\w -]+?)(?: colou?r)? (?:a (?:bit|little) )?(?P<way>darker|lighter)\b",
    re.I,
)
_HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})$", re.I)
_STEP = 0.2
MAX_COPIES = 50
MAIN_COLOR_WORDS = frozenset({"accent", "primary", "brand", "main"})


@dataclass(frozen=True)
class MoveSection:
    """`side` is before, after, top or end. The last two have no anchor."""

    name: str
    side: str
    anchor: str = ""


@dataclass(frozen=True)
class DuplicateSection:
    name: str
    count: int = 1


@dataclass(frozen=True)
class RenamePage:
    title: str


@dataclass(frozen=True)
class ShadeColor:
    what: str
    way: str


Arrangement = MoveSection | DuplicateSection | RenamePage | ShadeColor


def parse_arrangement(prompt: str) -> Arrangement | None:
    prompt = " ".join(prompt.split())
    if match := _RENAME.search(prompt):
        title = match["new"].strip().rstrip(".!").strip("\"“”«»'‘’ ")
        return RenamePage(title) if title else None
    if match := _SHADE.search(prompt):
        return ShadeColor(match["what"], match["way"].lower())
    if match := _COPY.search(prompt):
        count = {"": 1, "twice": 2}.get((match["times"] or "").lower()) or int(match["times"].split()[0])
        return DuplicateSection(match["name"], max(1, min(count, MAX_COPIES)))
    return _move(prompt)


def _move(prompt: str) -> MoveSection | None:
    match = _MOVE.search(prompt)
    if match is None:
        return None
    if match["end"]:
        return MoveSection(match["name"], "end" if match["end"].lower() in ("bottom", "end") else "top")
    return MoveSection(
        match["name"], "before" if match["side"].lower() in ("before", "above") else "after", match["anchor"]
    )


def describe_arrangement(wanted: Arrangement) -> str:
    match wanted:
        case MoveSection():
            where = f"{wanted.side} the {wanted.anchor} section" if wanted.anchor else f"to the {wanted.side}"
            return f"move the {wanted.name} section {where}"
        case DuplicateSection():
            return f"duplicate the {wanted.name} section" + (f" {wanted.count} times" if wanted.count > 1 else "")
        case RenamePage():
            return f"rename the page to “{wanted.title}”"
        case ShadeColor():
            return f"make the {wanted.what} colour {wanted.way}"
        case _:
            assert_never(wanted)


def plan_arrangement(wanted: Arrangement, page: HtmlPage) -> EditPlan | str:
    match wanted:
        case MoveSection():
            return _moved(wanted, page)
        case DuplicateSection():
            node = page.find_section(wanted.name)
            if node is None:
                return section_not_found_text(wanted.name, page)
            tool_input = {"nodeId": node.uid, "count": wanted.count}
            return EditPlan(f"I repeat the {wanted.name} section.", (ToolEdit("duplicateNode", tool_input),))
        case RenamePage():
            return EditPlan(
                f"I call the page “{wanted.title}”.",
                (ToolEdit("renamePage", {"pageId": page.id, "title": wanted.title}),),
            )
        case ShadeColor():
            return _shaded(wanted, page)
        case _:
            assert_never(wanted)


def _moved(wanted: MoveSection, page: HtmlPage) -> EditPlan | str:
    node = page.find_section(wanted.name)
    if node is None or node.parent is None:
        return section_not_found_text(wanted.name, page)
    parent, index = node.parent, 0
    others = [child for child in parent.children if child is not node]
    if wanted.anchor:
        anchor = page.find_section(wanted.anchor)
        if anchor is None or anchor.parent is None or anchor is node:
            return section_not_found_text(wanted.anchor, page)
        parent = anchor.parent
        others = [child for child in parent.children if child is not node]
        index = others.index(anchor) + (wanted.side == "after")
    elif wanted.side == "end":
        index = len(others)
    tool_input = {"nodeId": node.uid, "newParentId": parent.uid, "newIndex": index}
    return EditPlan(f"I {describe_arrangement(wanted)}.", (ToolEdit("moveNode", tool_input),))


def _shaded(wanted: ShadeColor, page: HtmlPage) -> EditPlan | str:
    """Change the custom property of that name; the page's main color for words like `primary`."""
    words = set(wanted.what.lower().split())
    named = [name for name in page.variables if all(word in name for word in words)]
    accent = find_accent_color(page).removeprefix("var(").removesuffix(")") if words & MAIN_COLOR_WORDS else ""
    name = named[0] if named else accent
    old = page.variables.get(name, "")
    if not _HEX.match(old):
        return f"I found no colour called {wanted.what} that I could make {wanted.way}."
    new = shade_hex_color(old, wanted.way)
    tool_input = {"tokens": [{"slug": name.removeprefix("--"), "lightValue": new}]}
    return EditPlan(f"I change {name} from {old} to {new}.", (ToolEdit("set_color_tokens", tool_input),))


def shade_hex_color(value: str, way: str) -> str:
    """Move a hex color by a fifth towards black or white."""
    digits = value[1:] if len(value) == 7 else "".join(2 * digit for digit in value[1:])
    hue, light, saturation = colorsys.rgb_to_hls(*(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)))
    light = light * (1 - _STEP) if way == "darker" else light + (1 - light) * _STEP
    return "#" + "".join(f"{round(channel * 255):02x}" for channel in colorsys.hls_to_rgb(hue, light, saturation))
