"""List and change the navigation of a site for the CMS tools: a flat list, in which a label names its item."""

from collections.abc import Callable, Sequence
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import WriteBasis
from fermata.content.opened_space import OpenedSpace
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

MAX_NAVIGATION_ITEMS = 5
NAVIGATION = DocumentKey("navigation", SINGLETON_ID)
_LEGAL_WORDS = frozenset({"privacy", "terms", "legal", "imprint", "cookies", "cookie", "policy", "disclaimer", "gdpr"})
_CENTRAL_WORDS = frozenset({"about", "contact", "services"})
NavigationItem = dict[str, Any]


def _build_item(label: str, href: str, location: str) -> NavigationItem:
    return {"label": label, "href": href, "location": location, "visible": True}


DEFAULT_NAVIGATION = (
    _build_item("Home", "/", "header"),
    _build_item("Blog", "/blog", "header"),
    _build_item("About", "/pages/about?locale=en", "both"),
    _build_item("Contact", "/pages/contact?locale=en", "header"),
)
"""What a site shows as long as nobody has changed it."""


def read_navigation_items(access: OpenedSpace) -> list[NavigationItem]:
    """Return the items of a site's navigation, in their order."""
    version = access.documents.find(NAVIGATION)
    return _list_items(version.content if version else None)


def get_navigation(_arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the items of the navigation."""
    return _describe(read_navigation_items(access), "")


def add_navigation_item(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Add an item at the end."""
    item = _build_item(arguments["label"].strip(), arguments["href"].strip(), arguments["location"])
    if not item["label"] or not item["href"]:
        raise InvalidRequest("An item needs a label and an href.")

    def add(items: list[NavigationItem]) -> list[NavigationItem]:
        if len(items) >= MAX_NAVIGATION_ITEMS:
            raise InvalidRequest(f"The navigation has {len(items)} items, which is as many as it may have. Remove one.")
        _check_label_is_free(items, item["label"])
        return [*items, item]

    return _describe(change_navigation(access, add), f"Added {item['label']!r}")


def update_navigation_item(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Change an item. What is not named stays."""
    new_names = {"newLabel": "label", "newHref": "href", "newLocation": "location", "visible": "visible"}
    changes = {own: arguments[given] for given, own in new_names.items() if given in arguments}
    if not changes:
        raise InvalidRequest("Say what is to change: newLabel, newHref, newLocation or visible.")

    def update(items: list[NavigationItem]) -> list[NavigationItem]:
        place = _find_place(items, arguments["label"])
        if "label" in changes:
            _check_label_is_free([*items[:place], *items[place + 1 :]], changes["label"])
        return [*items[:place], items[place] | changes, *items[place + 1 :]]

    return _describe(change_navigation(access, update), f"Updated {arguments['label']!r}")


def toggle_navigation_item(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Show an item that was hidden, or hide one that was shown."""

    def toggle(items: list[NavigationItem]) -> list[NavigationItem]:
        place = _find_place(items, arguments["label"])
        toggled = items[place] | {"visible": not items[place].get("visible", True)}
        return [*items[:place], toggled, *items[place + 1 :]]

    items = change_navigation(access, toggle)
    is_visible = items[_find_place(items, arguments["label"])]["visible"]
    return _describe(items, f"{arguments['label']!r} is {'shown' if is_visible else 'hidden'} now")


def remove_navigation_item(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Remove an item after the user has confirmed it."""
    label = arguments["label"]
    if arguments.get("confirmed") is not True:
        items = read_navigation_items(access)
        item = items[_find_place(items, label)]
        message = f"Remove {item['label']!r} from the navigation? Ask the user, and call again with confirmed."
        return {"success": False, "requiresConfirmation": True, "message": message, "navigationItem": item}

    def remove(items: list[NavigationItem]) -> list[NavigationItem]:
        place = _find_place(items, label)
        return [*items[:place], *items[place + 1 :]]

    return _describe(change_navigation(access, remove), f"Removed {label!r}")


def change_navigation(
    access: OpenedSpace, change: Callable[[list[NavigationItem]], list[NavigationItem]], effect_suffix: str = ""
) -> list[NavigationItem]:
    """Change the items of the navigation, and return them.

    Args:
        access: The opened space.
        change: Returns the new items; it is called again when another write was faster.
        effect_suffix: Tells this write of a call from another one of it.
    """

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
        content = before.content if before and before.content else DocumentContent(status=ContentStatus.PUBLISHED)
        return content.with_fields(DEFINITION_LOCALE, {"items": change(_list_items(content if before else None))})

    written = access.documents.change(NAVIGATION, decide, effect_suffix=effect_suffix)
    return _list_items(written.version.content)


def is_link_to_page(href: str, slug: str) -> bool:
    """Return whether an item leads to a page, and not only to one whose slug begins like it."""
    path = href.partition("?")[0].partition("#")[0].strip("/")
    return path in (slug, f"pages/{slug}")


def suggest_location(name: str, slug: str) -> dict[str, str]:
    """Return where in the navigation a new page belongs, and why."""
    words = set(f"{name} {slug}".lower().replace("-", " ").split())
    if words & _LEGAL_WORDS:
        location, reason = "footer", "Legal pages are usually linked in the footer."
    elif words & _CENTRAL_WORDS:
        location, reason = "both", "Visitors look for this page at the top and at the end."
    else:
        location, reason = "header", "Pages of the site are usually linked in the header."
    message = f"Ask the user whether {name!r} shall be in the navigation ({location})."
    return {"suggestedLocation": location, "reason": reason, "message": message}


def _list_items(content: DocumentContent | None) -> list[NavigationItem]:
    if content is None:
        return [dict(item) for item in DEFAULT_NAVIGATION]
    return [dict(item) for item in content.get_locale(DEFINITION_LOCALE).get("items", [])]


def _find_place(items: Sequence[NavigationItem], label: str) -> int:
    wanted = label.strip().casefold()
    for place, item in enumerate(items):
        if str(item["label"]).casefold() == wanted:
            return place
    labels = ", ".join(str(item["label"]) for item in items) or "none"
    raise NotFound(f"The navigation has no item {label[:80]!r}. Its items: {labels}.")


def _check_label_is_free(items: Sequence[NavigationItem], label: str) -> None:
    if any(str(item["label"]).casefold() == label.strip().casefold() for item in items):
        raise Conflict(f"The navigation has an item {label[:80]!r} already. Change that one, or choose another label.")


def _describe(items: Sequence[NavigationItem], message: str) -> dict[str, Any]:
    text = message or f"The navigation has {len(items)} items"
    return {"success": True, "message": text, "navigationItems": list(items), "count": len(items)}
