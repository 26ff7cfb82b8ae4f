"""Write new sections in the style of the page."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from local.demo_model.rules.html_page import HEADING_TAGS, HtmlPage
from local.demo_model.rules.intents import AddSection
from local.demo_model.rules.page_style import PageStyle, detect_page_style

Lines = list[str]


@dataclass(frozen=True)
class NewSection:
    """The HTML of a new section to insert, and its CSS."""

    html: str
    css: str
    heading: str
    name: str


@dataclass(frozen=True)
class _SectionDraft:
    intent: AddSection
    page: HtmlPage
    kit: PageStyle
    name: str
    """The class and id of the section. Its parts have classes `name__part`."""

    @property
    def button(self) -> str:
        return self.kit.button_class or f"{self.name}__button"

    @property
    def lead(self) -> str:
        return self.kit.lead_class or f"{self.name}__lead"

    @property
    def price(self) -> str:
        return self.kit.price_class or f"{self.name}__price"


def write_section(intent: AddSection, page: HtmlPage) -> NewSection:
    heading = intent.heading or _capitalize(intent.topic)
    draft = _SectionDraft(intent, page, detect_page_style(page), _unused_name(intent.topic or heading, page))
    lead, build = _kind(intent)
    body, css = build(draft)
    level, name = draft.kit.heading_tag, draft.name
    title = f'<{level} id="{name}-title">{escape(heading)}</{level}>'
    inside = [title, f'<p class="{draft.lead}">{escape(lead)}</p>', *body]
    if draft.kit.wrapper_class:
        inside = [f'<div class="{draft.kit.wrapper_class}">', *_indent(inside), "</div>"]
    classes = f"{draft.kit.section_class} {name}".strip()
    opening = f'<section class="{classes}" id="{name}" aria-labelledby="{name}-title">'
    return NewSection(
        "\n".join([opening, *_indent(inside), "</section>"]), "\n".join([*_frame_css(draft), *css]), heading, name
    )


def _kind(intent: AddSection) -> tuple[str, Callable[[_SectionDraft], tuple[Lines, Lines]]]:
    for words, lead, build in _KINDS:
        if re.search(words, intent.topic, re.I):
            return lead, build
    return f"More about {intent.topic or 'this'}.", _cards


def _pricing(draft: _SectionDraft) -> tuple[Lines, Lines]:
    cards = []
    names = draft.intent.items or _read_offers(draft.page, draft.kit) or ("Small", "Medium", "Large")
    target = "#contact" if "contact" in draft.page.used_names() else f"#{draft.name}"
    for index, item in enumerate(names):
        name, price = _split_price(item, 9 + 10 * index)
        cards.append([
            f"<h3>{escape(name)}</h3>",
            f'<p class="{draft.price}">{escape(price)}</p>',
            f'<p><a class="{draft.button}" href="{target}">Choose {escape(name)}</a></p>',
        ])  # fmt: skip
    lines, css = _grid(draft, cards)
    look = () if draft.kit.price_class else ("margin: 0", "font-weight: 700", f"color: {draft.kit.accent_color}")
    css.append(_rule(f".{draft.name} .{draft.price}", *look, "font-size: 1.75rem"))
    return lines, [*css, *_button_css(draft)]


def _questions(draft: _SectionDraft) -> tuple[Lines, Lines]:
    names = draft.intent.items or ("How do I order?", "Can I change my order?", "How can I reach you?")
    answer = "Write to us, and we answer within a day."
    lines = [
        f'<details class="{draft.name}__item"><summary>{escape(item)}</summary><p>{answer}</p></details>'
        for item in names
    ]
    return lines, [
        _rule(f".{draft.name}__item", "padding-block: 0.75rem", f"border-bottom: 1px solid {draft.kit.border_color}"),
        _rule(f".{draft.name}__item summary", "font-weight: 600", "cursor: pointer"),
    ]


def _quotes(draft: _SectionDraft) -> tuple[Lines, Lines]:
    names = draft.intent.items or ("Exactly what I hoped for.", "Friendly, fast and fair.", "I keep coming back.")
    lines, css = _grid(draft, [[f"<blockquote><p>{escape(declaration)}</p></blockquote>"] for declaration in names])
    quote = _rule(f".{draft.name} blockquote", "margin: 0", "font-size: 1.15rem", "font-style: italic")
    return lines, [*css, quote]


def _hours(draft: _SectionDraft) -> tuple[Lines, Lines]:
    rows = []
    for item in draft.intent.items or ("Monday to Friday: 9:00 to 18:00", "Saturday: 9:00 to 13:00", "Sunday: closed"):
        day, _, times = item.partition(":")
        rows.append(f"<dt>{escape(day.strip())}</dt><dd>{escape(times.strip() or '9:00 to 18:00')}</dd>")
    return [f'<dl class="{draft.name}__hours">', *_indent(rows), "</dl>"], [
        _rule(f".{draft.name}__hours", "display: grid", "grid-template-columns: max-content 1fr", "gap: 0.5rem 2rem"),
        _rule(f".{draft.name}__hours dd", "margin: 0"),
    ]


def _form(draft: _SectionDraft) -> tuple[Lines, Lines]:
    news = re.search(r"newsletter|sign|subscribe", draft.intent.topic, re.I)
    fields = ['<label>Your email <input type="email" name="email" autocomplete="email" required></label>']
    if not news:
        fields.append('<label>Your message <textarea name="message" rows="4" required></textarea></label>')
    fields.append(f'<button class="{draft.button}" type="submit">{"Sign up" if news else "Send"}</button>')
    return [f'<form class="{draft.name}__form">', *_indent(fields), "</form>"], [
        _rule(f".{draft.name}__form", "display: grid", "gap: 1rem", "justify-items: start"),
        _rule(f".{draft.name}__form :is(input, textarea)", "display: block", "padding: 0.5rem", "font: inherit"),
        *_button_css(draft),
    ]


def _cards(draft: _SectionDraft) -> tuple[Lines, Lines]:
    topic = _capitalize(draft.intent.topic)
    names = draft.intent.items or (f"{topic} one", f"{topic} two", f"{topic} three")
    return _grid(
        draft, [[f"<h3>{escape(item)}</h3>", "<p>Say here what makes it worth a visit.</p>"] for item in names]
    )


_KINDS: tuple[tuple[str, str, Callable[[_SectionDraft], tuple[Lines, Lines]]], ...] = (
    (r"pric|plan|package|rate", "Clear prices, no surprises.", _pricing),
    (r"faq|question", "What people ask us most.", _questions),
    (r"testimonial|review|quote|customer", "What people say about us.", _quotes),
    (r"hour|opening", "When you find us here.", _hours),
    (r"newsletter|sign|subscribe", "News now and then, and never more than that.", _form),
    (r"contact|form", "We are happy to hear from you.", _form),
)


def _grid(draft: _SectionDraft, cards: list[Lines]) -> tuple[Lines, Lines]:
    """Write a grid of cards with the page's own card classes, or new ones."""
    kit, name = draft.kit, draft.name
    lines = [f'<ul class="{kit.grid_class or name + "__grid"}">']
    for card in cards:
        lines += _indent([f'<li class="{kit.card_class or name + "__card"}">', *_indent(card), "</li>"])
    css = []
    if not kit.grid_class:
        columns = "grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr))"
        css.append(_rule(f".{name}__grid", "display: grid", columns, f"gap: {kit.gap}", *_NO_LIST))
    if not kit.card_class:
        look = (
            f"border: 1px solid {kit.border_color}",
            f"border-radius: {kit.radius}",
            f"background: {kit.surface_color}",
        )
        css.append(_rule(f".{name}__card", f"padding: {kit.gap}", *look))
    return [*lines, "</ul>"], css


_NO_LIST = ("margin: 0", "padding: 0", "list-style: none")


def _frame_css(draft: _SectionDraft) -> Lines:
    room = [] if draft.kit.section_class else [f"padding-block: {draft.kit.section_padding}"]
    lead = [] if draft.kit.lead_class else [_rule(f".{draft.lead}", "max-width: 40rem")]
    return [_rule(f".{draft.name}", *room, "scroll-margin-top: 4rem"), *lead]


def _button_css(draft: _SectionDraft) -> Lines:
    if draft.kit.button_class:
        return []
    line = f"border: 2px solid {draft.kit.accent_color}"
    look = ("color: inherit", "background: none", "font: inherit", "text-decoration: none")
    return [_rule(f".{draft.button}", "padding: 0.6rem 1.2rem", line, f"border-radius: {draft.kit.radius}", *look)]


def _rule(selector: str, *declarations: str) -> str:
    return "\n".join([f"{selector} {{", *(f"  {declaration};" for declaration in declarations), "}"])


def _read_offers(page: HtmlPage, kit: PageStyle) -> tuple[str, ...]:
    """Read the names and prices on the page's own cards."""
    cards = [node for node in page.root.iter_descendants() if kit.card_class and kit.card_class in node.classes]
    shown = []
    for card in cards:
        heading = card.find_first(*HEADING_TAGS)
        price = next(
            (node.text for node in card.iter_descendants() if kit.price_class and kit.price_class in node.classes), ""
        )
        shown += [f"{heading.text}: {price}".rstrip(": ")] if heading else []
    return tuple(dict.fromkeys(shown))[:4]


def _unused_name(wanted: str, page: HtmlPage) -> str:
    """Make a name that no class and id of the page has."""
    name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    name = name if name[:1].isalpha() else f"section-{name}".rstrip("-")
    used, count, fresh = page.used_names(), 1, name
    while fresh in used:
        count += 1
        fresh = f"{name}-{count}"
    return fresh


def _split_price(item: str, otherwise: int) -> tuple[str, str]:
    """Split a price from an item: `Rye bread for €4.50` is (`Rye bread`, `€4.50`)."""
    match = re.search(r"[€$£]\s?\d+(?:[.,]\d+)?|\d+[.,]\d\d\b|\d+\s?(?:€|EUR|USD)", item)
    if not match:
        return item, f"€{otherwise}"
    return re.sub(r"[\s:-]*(?:\bfor|\bat)?[\s:-]*$", "", item.replace(match[0], "")), match[0]


def _capitalize(topic: str) -> str:
    return topic[:1].upper() + topic[1:] if topic else "New section"


def _indent(lines: Lines) -> Lines:
    return ["  " + line for line in lines]
