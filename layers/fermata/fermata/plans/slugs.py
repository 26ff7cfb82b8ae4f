"""Read slugs as models and users write them, and derive ids and titles from them."""

import re
from collections.abc import Collection

from fermata.plans.page_model import HOME_SLUG

_UNFIT = re.compile(r"[^a-z0-9/_.~%-]+")
_MENTION = re.compile(r"(?<![\w/:.])/(?:[a-z0-9][a-z0-9/_-]*+)?(?![\w])", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_NO_ID = re.compile(r"[^a-z0-9]+")
_WORD_BREAK = re.compile(r"[-_/\s]+")


def normalize_slug(text: object) -> str | None:
    """Return the slug that a text means, `/about-us` for `About us` and `/About-Us/`; None if it means none."""
    if not isinstance(text, str) or not text.strip() or "://" in text:
        return None
    plain = _BLANKS.sub("-", text.strip().lower())
    if plain in ("home", "/home", "homepage", "index", "/"):
        return HOME_SLUG
    parts = [part for part in _UNFIT.sub("", plain).split("/") if part]
    return f"/{'/'.join(parts)}" if parts else None


def find_slug_problem(slug: str) -> str:
    """Return why no link to a slug would lead to its page; empty for one that is right.

    A browser takes parts of dots out of an address, reads `//` at its beginning as another host, and `\\` as `/`.
    """
    if slug.startswith("//") or "\\" in slug:
        return "would lead to another site: begin it with one '/', and write no '\\'"
    if "?" in slug or "#" in slug:
        return "may not have '?' or '#', which end the path of an address"
    if any(part.lower().replace("%2e", ".") in (".", "..") for part in slug.split("/")):
        return "may not have a part that is '.' or '..': write the path that is meant"
    return ""


def list_mentioned_slugs(message: str) -> list[str]:
    """Return the slugs that a user's message mentions, in its order."""
    found = (normalize_slug(match[0]) for match in _MENTION.finditer(message))
    return list(dict.fromkeys(slug for slug in found if slug))


def make_copy_slug(slug: str, taken: Collection[str]) -> str:
    """Return the slug of a copy of a page that is given none: `/about-copy`, or the first one with a number.

    Args:
        slug: Of the page that is copied.
        taken: The slugs of all pages.
    """
    return make_free_id("/home-copy" if slug == HOME_SLUG else f"{slug.rstrip('/')}-copy", taken)


def make_free_id(wanted: str, taken: Collection[str]) -> str:
    """Return the wanted id, or the first one with a number behind it that is not taken."""
    number, free = 1, wanted
    while free in taken:
        number += 1
        free = f"{wanted}_{number}"
    return free


def make_page_id(slug: str) -> str:
    """Return the id of a new page."""
    core = _NO_ID.sub("_", slug.lower()).strip("_")
    return f"p_{core or 'home'}"


def make_page_title(slug: str) -> str:
    """Return the title of a new page that has none."""
    words = _WORD_BREAK.split(slug.strip("/"))
    return " ".join(word[:1].upper() + word[1:] for word in words if word) or "Home"
