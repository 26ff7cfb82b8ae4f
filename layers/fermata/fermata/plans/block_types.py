"""Know the block types that plans name without saying all of it: their spelling, default props and list items."""

import copy
import re
from typing import Any

DEFAULT_PROPS: dict[str, dict[str, Any]] = {
    "Hero": {
        "heading": "A headline for this page",
        "ctaText": "Learn more",
        "ctaHref": "/",
        "imageUrl": "",
        "imageAlt": "",
        "imagePosition": "right",
    },
    "FeatureGrid": {
        "title": "Features",
        "features": [
            {"title": "First feature", "description": "What it does."},
            {"title": "Second feature", "description": "What it does."},
        ],
    },
    "Testimonials": {
        "title": "What customers say",
        "items": [{"quote": "A sentence of a customer.", "author": "Name"}],
    },
    "FAQAccordion": {"title": "Questions and answers", "items": [{"q": "A question?", "a": "Its answer."}]},
    "CTA": {"title": "Get started", "description": "What happens next.", "ctaText": "Start", "ctaHref": "/"},
    "Card": {"title": "Title", "description": "Description.", "ctaText": "Read more", "ctaHref": "/"},
    "CardGrid": {
        "title": "Overview",
        "cards": [{"title": "First card", "description": "Description.", "ctaText": "Read more", "ctaHref": "/"}],
    },
    "RichText": {"title": "", "body": "Text."},
    "TwoColumn": {"left": {"title": "Left"}, "right": {"title": "Right"}},
    "Stats": {"title": "In numbers", "items": [{"value": "100", "label": "Label"}]},
    "Gallery": {"title": "Gallery", "images": [{"imageUrl": "", "imageAlt": ""}]},
}
"""The props of a new block of which the plan names only the type."""

_TYPE_PATTERNS = (
    (re.compile(r"hero|banner"), "Hero"),
    (re.compile(r"feature|benefit|advantage"), "FeatureGrid"),
    (re.compile(r"testimonial|review|quote|social proof"), "Testimonials"),
    (re.compile(r"faq|accordion|question"), "FAQAccordion"),
    (re.compile(r"two.?column|2.?column"), "TwoColumn"),
    (re.compile(r"stat|metric"), "Stats"),
    (re.compile(r"gallery|photos"), "Gallery"),
    (re.compile(r"\bcta\b|call.to.action"), "CTA"),
    (re.compile(r"card.?grid|cards|pricing"), "CardGrid"),
    (re.compile(r"\bcard\b"), "Card"),
    (re.compile(r"rich.?text|prose|paragraph|\btext\b"), "RichText"),
)
_ITEM_WORDS = {
    "FAQAccordion": {"question", "questions", "answer", "answers", "faq"},
    "FeatureGrid": {"feature", "features", "benefit", "benefits"},
    "Testimonials": {"testimonial", "testimonials", "review", "reviews", "quote", "quotes"},
    "CardGrid": {"card", "cards", "plan", "plans", "tier", "tiers"},
    "Stats": {"stat", "stats", "number", "numbers", "metric", "metrics"},
    "Gallery": {"photo", "photos", "image", "images", "picture", "pictures"},
}
_ANY_ITEM = {"item", "items", "slide", "slides", "entry", "entries", "row", "rows"}


def find_block_type(name: str) -> str | None:
    """Return the type that a name means: a known one in any case, or one that its words describe."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for known in DEFAULT_PROPS:
        if known.lower() == plain:
            return known
    return find_type_in_message(name)


def find_type_in_message(message: str) -> str | None:
    """Return the type of block that a user's message is about, if its words describe one."""
    return next((known for pattern, known in _TYPE_PATTERNS if pattern.search(message.lower())), None)


def make_default_props(block_type: str) -> dict[str, Any]:
    """Return the props of a new block of a type; nothing for a type that is not known here."""
    return copy.deepcopy(DEFAULT_PROPS.get(block_type, {}))


def make_default_item(block_type: str) -> dict[str, Any] | None:
    """Return an item for the list of a block of a type, or None."""
    lists = [value for value in DEFAULT_PROPS.get(block_type, {}).values() if isinstance(value, list)]
    return copy.deepcopy(lists[0][0]) if lists else None


def list_item_words(block_type: str) -> frozenset[str]:
    """Return the words that mean an item of a block of a type."""
    return frozenset(_ITEM_WORDS.get(block_type, set()) | _ANY_ITEM)
