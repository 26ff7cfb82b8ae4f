"""Parse what a prompt asks for."""

import re
from dataclasses import dataclass

from local.demo_model.rules.move_copy_rename import Arrangement, parse_arrangement

_QUOTED = re.compile(r"[\"“”«»]([^\"“”«»]+)[\"“”«»]|(?<!\w)['‘]([^'’]+)['’](?!\w)")
_ADD = re.compile(
    r"\b(?:(?:add|insert|append|include|put|create)\b|(?:make|build|write)\b(?=(?: me| us)? (?:a|an|another|some)\b))"
    r"(?P<rest>.+)",
    re.I | re.S,
)
_REMOVE = re.compile(
    r"\b(?:remove|delete|drop|get rid of|take out)\b(?: the| this| our| that)? (?P<name>.+)", re.I | re.S
)
_TEXT = re.compile(
    r"\b(?:change|replace|set|update|rename|rewrite|make)\b(?P<what>.*?\b(?:heading|headline|title|h[1-6])\b.*?)"
    r"\b(?:to|with|say|says|read|reads|into)\b:?\s*(?P<new>.+)",
    re.I | re.S,
)
_SWAP = re.compile(r"\b(?:change|replace|swap|rename)\b(?P<old>.+?)\b(?:to|with|by|for|into)\b(?P<new>.+)", re.I | re.S)
_PAINT = re.compile(r"\b(?:change|set|make|turn|paint|colou?r)\b\s+(?P<what>.+)", re.I | re.S)
_VALUE = re.compile(r"(?:#[0-9a-f]{3,8}|(?:rgb|hsl|oklch)a?\([^)]*\)|var\(--[\w-]+\))$", re.I)
_SIDES = (
    re.compile(r"^(?P<kind>text|background|font)? ?colou?rs? (?:of|for) (?P<of>.+)$", re.I),
    re.compile(r"^(?P<kind>background) (?:of|for) (?P<of>.+)$", re.I),
    re.compile(r"^(?P<of>.+?)(?:'s)?(?: (?P<kind>text|background|font))?(?: colou?rs?)?$", re.I),
)
_PLACE = re.compile(r"\b(?P<side>before|above|after|below|under|behind)\b (?:the )?(?P<anchor>[\w -]+)", re.I)
_TOP = re.compile(r"\b(?:at|to|on) the (?:top|start|beginning)\b", re.I)

_NAMES = """aqua aquamarine azure beige black blue brown chocolate coral cornflowerblue crimson cyan darkblue darkcyan
    darkgray darkgreen darkgrey darkorange darkred deeppink dodgerblue firebrick forestgreen fuchsia gold goldenrod
    gray green grey hotpink indigo ivory khaki lavender lightblue lightgray lightgreen lightgrey lime limegreen
    magenta maroon midnightblue mintcream navy olive orange orangered orchid peachpuff pink plum purple rebeccapurple
    red royalblue saddlebrown salmon seagreen sienna silver skyblue slateblue slategray steelblue tan teal thistle
    tomato turquoise violet wheat white yellow yellowgreen"""
CSS_COLOR_NAMES = frozenset(_NAMES.split())


@dataclass(frozen=True)
class AddSection:
    """A new section: its topic, heading and items, and where it goes."""

    topic: str
    heading: str | None = None
    items: tuple[str, ...] = ()
    side: str = "end"
    anchor: str = ""


@dataclass(frozen=True)
class ReplaceText:
    """A new text in place of `old`, or of the heading that `what` describes."""

    new: str
    old: str | None = None
    what: str = ""


@dataclass(frozen=True)
class RemoveSection:
    name: str


@dataclass(frozen=True)
class ChangeColor:
    what: str
    colour: str
    background: bool = False


Intent = AddSection | ReplaceText | RemoveSection | ChangeColor | Arrangement


def parse_intent(prompt: str) -> Intent | None:
    return _remove(prompt) or parse_arrangement(prompt) or _retext(prompt) or _paint(prompt) or _add(prompt)


def quoted_phrases(text: str) -> list[str]:
    return [(double or single).strip() for double, single in _QUOTED.findall(text)]


def _remove(prompt: str) -> RemoveSection | None:
    match = _REMOVE.search(prompt)
    if not match or _ADD.match(prompt.strip()):
        return None
    name = re.split(r"\bfrom\b|[.!?\n]", match["name"])[0]
    return RemoveSection(_strip_fillers(name))


def _retext(prompt: str) -> ReplaceText | None:
    match = _TEXT.search(prompt)
    if match and not re.search(r"\bcolou?r", match["what"], re.I):
        old = quoted_phrases(match["what"])
        return ReplaceText(_quoted_or_all(match["new"]), old[0] if old else None, match["what"].strip())
    match = _SWAP.search(prompt)
    if match and quoted_phrases(match["old"]) and quoted_phrases(match["new"]):
        return ReplaceText(quoted_phrases(match["new"])[0], quoted_phrases(match["old"])[0])
    return None


def _paint(prompt: str) -> ChangeColor | None:
    match = _PAINT.search(prompt.strip().rstrip(".! "))
    what, colour = _split_colour(match["what"]) if match else ("", None)
    if not what or not colour:
        return None
    what = re.sub(r"\b(?:the|all|our|my)\b ?", "", re.sub(r"\s+(?:to|into|in)$", "", what), flags=re.I)
    sides = next(match for side in _SIDES if (match := side.match(what.strip())))
    return ChangeColor(_strip_fillers(sides["of"]), colour, (sides["kind"] or "").lower() == "background")


def _split_colour(text: str) -> tuple[str, str | None]:
    """Split a text into what precedes its final color, and the color: `links dark red` is (`links`, `darkred`)."""
    if value := _VALUE.search(text):
        return text[: value.start()].strip(), value[0]
    words = text.split()
    for count in (2, 1):
        colour = re.sub(r"[^a-z]", "", "".join(words[-count:]).lower())
        if len(words) > count and colour in CSS_COLOR_NAMES:
            return " ".join(words[:-count]), colour
    return text, None


def _add(prompt: str) -> AddSection | None:
    match = _ADD.search(prompt)
    if not match:
        return None
    rest = match["rest"]
    names = quoted_phrases(rest)
    titled = re.search(r"\b(?:titled|called|named|headed|with the (?:heading|title))\b", rest, re.I)
    heading = names.pop(0) if titled and names else None
    place = _PLACE.search(rest)
    side = "top" if _TOP.search(rest) else "end"
    if place:
        side = "before" if place["side"].lower() in ("before", "above") else "after"
    return AddSection(
        _read_topic(rest),
        heading,
        tuple(names) or _read_items(rest),
        side,
        _strip_fillers(place["anchor"]) if place else "",
    )


def _read_topic(rest: str) -> str:
    """Get the words between the article and `section`, or up to what follows."""
    text = _PLACE.split(_QUOTED.sub(" ", rest))[0]
    text = re.split(r"\band (?:remove|delete|change|replace|make|set|add)\b", text)[0]
    text = re.split(
        r"\b(?:with|that|which|to the|on the|at the|for the|titled|called|named|using|saying)\b|[.,:;!?\n]", text
    )[0]
    return _strip_fillers(re.sub(r"^\s*(?:me|us)?\s*(?:a|an|the|some|another|one|new)\b", "", text, flags=re.I))


def _read_items(rest: str) -> tuple[str, ...]:
    """Read items from `with three plans: Small, Medium and Large`, or `with Small, Medium and Large plans`."""
    match = re.search(r":\s*(?P<list>[^.\n]+)", rest) or re.search(
        r"\bwith (?P<list>[^.:\n]*(?:,| and )[^.:\n]*)", rest
    )
    if not match:
        return ()
    text = re.sub(r"\b(?:plans?|items?|cards?|questions?|tiers?|columns?)\s*$", "", match["list"].strip(), flags=re.I)
    items = [item.strip(" .") for item in re.split(r",\s*(?:and\s+)?|\s+and\s+", text)]
    return tuple(item for item in items if item)[:6]


def _quoted_or_all(text: str) -> str:
    names = quoted_phrases(text)
    return names[0] if names else text.strip().rstrip(".").strip()


def _strip_fillers(text: str) -> str:
    """Remove the words around a name: `our pricing section, please` is `pricing`."""
    text = re.sub(r"\b(?:the|our|a|an|new|section|sections|block|area|part|please|page)\b", " ", text, flags=re.I)
    return " ".join(re.sub(r"[^\w &'-]", " ", text).split())
