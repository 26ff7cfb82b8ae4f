"""Render a document as a plain HTML page: what it says, without a design."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DocumentVersion
from fermata.content.page_sections import list_page_sections

_MAX_DEPTH = 10
_IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg")
_HIDDEN_FIELDS = frozenset({"sections", "meta", "indexing"})


def render_document_html(version: DocumentVersion, locale: str, image_addresses: frozenset[str] = frozenset()) -> str:
    """Return a document in a language as HTML. All of its text is escaped, so that content runs nothing.

    Args:
        version: The document, with addresses in the place of references.
        locale: The language.
        image_addresses: Addresses that are images, whatever they end with.
    """
    content = version.content
    assert content is not None
    shared, texts = content.get_locale(DEFINITION_LOCALE), content.get_locale(locale)
    meta = shared.get("meta")
    if not isinstance(meta, dict):
        meta = {}
    title = str(meta.get("title") or content.title)
    description = str(meta.get("description") or "")
    robots = '<meta name="robots" content="noindex">' if shared.get("indexing") is False else ""
    body = "".join(_render_body(version, shared, texts, image_addresses))
    return (
        f'<!doctype html>\n<html lang="{escape(locale)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><meta name="description" content="{escape(description)}">{robots}</head>'
        f"<body><main><h1>{escape(content.title)}</h1>{body}</main></body></html>\n"
    )


def _render_body(
    version: DocumentVersion, shared: Mapping[str, Any], texts: Mapping[str, Any], images: frozenset[str]
) -> Iterator[str]:
    assert version.content is not None
    sections = list_page_sections(version.content) if isinstance(shared.get("sections"), list) else []
    section_ids = {section.id for section in sections}
    own, hidden = {**shared, **texts}, _HIDDEN_FIELDS | section_ids
    yield from _render_fields({name: own[name] for name in own if name not in hidden}, images, 0)
    for section in sections:
        inner = "".join(_render_fields(texts.get(section.id) or {}, images, 0))
        yield f'<section id="{escape(section.id)}" class="{escape(section.model)}">{inner}</section>'


def _render_fields(fields: Any, images: frozenset[str], depth: int) -> Iterator[str]:
    if isinstance(fields, dict) and isinstance(fields.get("href"), str):
        yield _render_link(fields)
    elif isinstance(fields, dict):
        for name, value in fields.items():
            yield f'<div class="{escape(str(name))}">{"".join(_render_value(value, images, depth + 1))}</div>'
    elif fields is not None:
        yield from _render_value(fields, images, depth)


def _render_value(value: Any, images: frozenset[str], depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH or value is None:
        return
    if isinstance(value, dict):
        yield from _render_fields(value, images, depth)
    elif isinstance(value, list):
        yield "<ul>" + "".join(f"<li>{''.join(_render_value(one, images, depth + 1))}</li>" for one in value) + "</ul>"
    elif isinstance(value, str) and (value in images or _is_image_address(value)):
        yield f'<img src="{escape(value)}" alt="" loading="lazy">'
    elif isinstance(value, str):
        yield "".join(f"<p>{escape(part)}</p>" for part in value.split("\n\n") if part.strip())
    else:
        yield escape(str(value).lower() if isinstance(value, bool) else str(value))


def _is_image_address(value: str) -> bool:
    return value.startswith(("https://", "http://", "/")) and value.partition("?")[0].lower().endswith(_IMAGE_ENDINGS)


def _render_link(fields: Mapping[str, Any]) -> str:
    """Return a link; one whose address would run a script is only its text."""
    href = str(fields["href"]).strip()
    label = escape(str(fields.get("label") or fields.get("text") or href))
    scheme = href.partition(":")[0].lower() if ":" in href.partition("/")[0] else ""
    if scheme not in ("", "http", "https", "mailto", "tel"):
        return f"<span>{label}</span>"
    return f'<a href="{escape(href)}">{label}</a>'
