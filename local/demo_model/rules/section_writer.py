"""Writes new sections in the page's own style."""

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
    """A new section: the HTML to insert, and the CSS that goes with it."""

    html: str
    css: str
    heading: str
    name: str


@dataclass(frozen=True)
class _Job:
    wish: AddSection
    page: HtmlPage
    kit: PageStyle
    name: str
    """The class and id of the section; its parts are called `name__part`."""

    @property
    def button(self) -> str:
        return self.kit.button_class or f"{self.name}__button"

    @property
    def lead(self) -> str:
        return self.kit.lead_class or f"{self.name}__lead"

    @property
    def price(self) -> str:
        return self.kit.price_class or f"{self.name}__price"


def write_section(wish: AddSection, page: HtmlPage) -> NewSection:
    heading = wish.heading or _titled(wish.topic)
    job = _Job(wish, page, detect_page_style(page), _fresh(wish.topic or heading, page))
    lead, build = _kind(wish)
    body, css = build(job)
    level, name = job.kit.heading_tag, job.name
    title = f'<{level} id="{name}-title">{escape(heading)}</{level}>'
    inside = [title, f'<p class="{job.lead}">{escape(lead)}</p>', *body]
    if job.kit.wrapper_class:
        inside = [f'<div class="{job.kit.wrapper_class}">', *_in(inside), "</div>"]
    classes = f"{job.kit.section_class} {name}".strip()
    opening = f'<section class="{classes}" id="{name}" aria-labelledby="{name}-title">'
    return NewSection(
        "\n".join([opening, *_in(inside), "</section>"]), "\n".join([*_frame_css(job), *css]), heading, name
    )


def _kind(wish: AddSection) -> tuple[str, Callable[[_Job], tuple[Lines, Lines]]]:
    for words, lead, build in _KINDS:
        if re.search(words, wish.topic, re.I):
            return lead, build
    return f"More about {wish.topic or 'this'}.", _cards


def _pricing(job: _Job) -> tuple[Lines, Lines]:
    cards = []
    names = job.wish.items or _things_shown(job.page, job.kit) or ("Small", "Medium", "Large")
    target = "#contact" if "contact" in job.page.used_names() else f"#{job.name}"
    for index, item in enumerate(names):
        name, price = _priced(item, 9 + 10 * index)
        cards.append([
            f"<h3>{escape(name)}</h3>",
            f'<p class="{job.price}">{escape(price)}</p>',
            f'<p><a class="{job.button}" href="{target}">Choose {escape(name)}</a></p>',
        ])  # fmt: skip
    lines, css = _grid(job, cards)
    look = () if job.kit.price_class else ("margin: 0", "font-weight: 700", f"color: {job.kit.accent_color}")
    css.append(_rule(f".{job.name} .{job.price}", *look, "font-size: 1.75rem"))
    return lines, [*css, *_button_css(job)]


def _questions(job: _Job) -> tuple[Lines, Lines]:
    names = job.wish.items or ("How do I order?", "Can I change my order?", "How can I reach you?")
    answer = "Write to us, and we answer within a day."
    lines = [
        f'<details class="{job.name}__item"><summary>{escape(item)}</summary><p>{answer}</p></details>'
        for item in names
    ]
    return lines, [
        _rule(f".{job.name}__item", "padding-block: 0.75rem", f"border-bottom: 1px solid {job.kit.border_color}"),
        _rule(f".{job.name}__item summary", "font-weight: 600", "cursor: pointer"),
    ]


def _quotes(job: _Job) -> tuple[Lines, Lines]:
    names = job.wish.items or ("Exactly what I hoped for.", "Friendly, fast and fair.", "I keep coming back.")
    lines, css = _grid(job, [[f"<blockquote><p>{escape(said)}</p></blockquote>"] for said in names])
    quote = _rule(f".{job.name} blockquote", "margin: 0", "font-size: 1.15rem", "font-style: italic")
    return lines, [*css, quote]


def _hours(job: _Job) -> tuple[Lines, Lines]:
    rows = []
    for item in job.wish.items or ("Monday to Friday: 9:00 to 18:00", "Saturday: 9:00 to 13:00", "Sunday: closed"):
        day, _, times = item.partition(":")
        rows.append(f"<dt>{escape(day.strip())}</dt><dd>{escape(times.strip() or '9:00 to 18:00')}</dd>")
    return [f'<dl class="{job.name}__hours">', *_in(rows), "</dl>"], [
        _rule(f".{job.name}__hours", "display: grid", "grid-template-columns: max-content 1fr", "gap: 0.5rem 2rem"),
        _rule(f".{job.name}__hours dd", "margin: 0"),
    ]


def _form(job: _Job) -> tuple[Lines, Lines]:
    news = re.search(r"newsletter|sign|subscribe", job.wish.topic, re.I)
    fields = ['<label>Your email <input type="email" name="email" autocomplete="email" required></label>']
    if not news:
        fields.append('<label>Your message <textarea name="message" rows="4" required></textarea></label>')
    fields.append(f'<button class="{job.button}" type="submit">{"Sign up" if news else "Send"}</button>')
    return [f'<form class="{job.name}__form">', *_in(fields), "</form>"], [
        _rule(f".{job.name}__form", "display: grid", "gap: 1rem", "justify-items: start"),
        _rule(f".{job.name}__form :is(input, textarea)", "display: block", "padding: 0.5rem", "font: inherit"),
        *_button_css(job),
    ]


def _cards(job: _Job) -> tuple[Lines, Lines]:
    topic = _titled(job.wish.topic)
    names = job.wish.items or (f"{topic} one", f"{topic} two", f"{topic} three")
    return _grid(job, [[f"<h3>{escape(item)}</h3>", "<p>Say here what makes it worth a visit.</p>"] for item in names])


_KINDS: tuple[tuple[str, str, Callable[[_Job], tuple[Lines, Lines]]], ...] = (
    (r"pric|plan|package|rate", "Clear prices, no surprises.", _pricing),
    (r"faq|question", "What people ask us most.", _questions),
    (r"testimonial|review|quote|customer", "What people say about us.", _quotes),
    (r"hour|opening", "When you find us here.", _hours),
    (r"newsletter|sign|subscribe", "News now and then, and never more than that.", _form),
    (r"contact|form", "We are happy to hear from you.", _form),
)


def _grid(job: _Job, cards: list[Lines]) -> tuple[Lines, Lines]:
    """The page's own cards where it has some, else ours."""
    kit, name = job.kit, job.name
    lines = [f'<ul class="{kit.grid_class or name + "__grid"}">']
    for card in cards:
        lines += _in([f'<li class="{kit.card_class or name + "__card"}">', *_in(card), "</li>"])
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


def _frame_css(job: _Job) -> Lines:
    room = [] if job.kit.section_class else [f"padding-block: {job.kit.section_padding}"]
    lead = [] if job.kit.lead_class else [_rule(f".{job.lead}", "max-width: 40rem")]
    return [_rule(f".{job.name}", *room, "scroll-margin-top: 4rem"), *lead]


def _button_css(job: _Job) -> Lines:
    if job.kit.button_class:
        return []
    line = f"border: 2px solid {job.kit.accent_color}"
    look = ("color: inherit", "background: none", "font: inherit", "text-decoration: none")
    return [_rule(f".{job.button}", "padding: 0.6rem 1.2rem", line, f"border-radius: {job.kit.radius}", *look)]


def _rule(selector: str, *declarations: str) -> str:
    return "\n".join([f"{selector} {{", *(f"  {said};" for said in declarations), "}"])


def _things_shown(page: HtmlPage, kit: PageStyle) -> tuple[str, ...]:
    """The names on the page's own cards, with their prices: what it shows is what it sells."""
    cards = [node for node in page.root.iter_descendants() if kit.card_class and kit.card_class in node.classes]
    shown = []
    for card in cards:
        heading = card.find_first(*HEADING_TAGS)
        price = next(
            (node.text for node in card.iter_descendants() if kit.price_class and kit.price_class in node.classes), ""
        )
        shown += [f"{heading.text}: {price}".rstrip(": ")] if heading else []
    return tuple(dict.fromkeys(shown))[:4]


def _fresh(wanted: str, page: HtmlPage) -> str:
    """A name no class and id has yet."""
    name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    name = name if name[:1].isalpha() else f"section-{name}".rstrip("-")
    used, count, fresh = page.used_names(), 1, name
    while fresh in used:
        count += 1
        fresh = f"{name}-{count}"
    return fresh


def _priced(item: str, otherwise: int) -> tuple[str, str]:
    """`Rye bread for €4.50` is `Rye bread` at `€4.50`."""
    found = re.search(r"[€$£]\s?\d+(?:[.,]\d+)?|\d+[.,]\d\d\b|\d+\s?(?:€|EUR|USD)", item)
    if not found:
        return item, f"€{otherwise}"
    return re.sub(r"[\s:-]*(?:\bfor|\bat)?[\s:-]*$", "", item.replace(found[0], "")), found[0]


def _titled(topic: str) -> str:
    return topic[:1].upper() + topic[1:] if topic else "New section"


def _in(lines: Lines) -> Lines:
    return ["  " + line for line in lines]
