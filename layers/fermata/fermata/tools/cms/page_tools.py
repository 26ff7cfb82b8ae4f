"""List, read, create, change and delete pages for the CMS tools."""

import re
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.change_document import WrittenDocument, store_under_new_id
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import MAX_LISTED
from fermata.content.documents.read_document import read_write_basis
from fermata.content.model_store import read_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import (
    PageSection,
    add_page_section,
    list_page_sections,
    list_section_models,
    merge_section_content,
)
from fermata.domain.errors import InvalidRequest
from fermata.domain.plain_letters import remove_marks
from fermata.tools.cms.navigation_tools import (
    change_navigation,
    is_link_to_page,
    read_navigation_items,
    suggest_location,
)
from fermata.tools.cms.section_tools import make_section_id, read_section_models
from fermata.tools.cms.store_handler import PAGE_MODEL_ID, choose_default_locale, describe_page, describe_section

_DEFAULT_SECTION = "hero"
_HEADING_FIELDS = ("title", "heading", "headline")
_MAX_SLUG = 64


def get_pages(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a page of the list of pages."""
    limit = min(max(1, arguments.get("limit", 100)), MAX_LISTED)
    page = access.documents.list(PAGE_MODEL_ID, limit=limit, after=arguments.get("cursor", ""))
    stored = read_model(access.resources, access.space, PAGE_MODEL_ID).documents
    total = stored + access.documents.count_added(PAGE_MODEL_ID)
    pages = [{"id": head.id, "name": head.title, "slug": head.slug} for head in page.documents]
    answer = {"success": True, "pages": pages, "total": total, "message": f"Found {total} pages"}
    return answer | ({"nextCursor": page.after} if page.after else {})


def get_cms_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a page, with the content of its sections if it is asked for."""
    version = _find_page(arguments, access)
    page = describe_page(version)
    if arguments.get("includeContent") and version.content is not None:
        texts = version.content.get_locale(choose_default_locale(arguments, access))
        found = list_page_sections(version.content)
        models = read_section_models(access, found)
        page["sections"] = [describe_section(one, place, models, texts) for place, one in enumerate(found)]
    return {"success": True, "page": page, "message": f"Page {page['name']!r}"}


def create_cms_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Create a page. Without a slug it gets one that is made of its name."""
    if arguments.get("sections"):
        return create_page_with_content(arguments, access)
    content = _build_page(arguments)
    written = access.documents.create(PAGE_MODEL_ID, content)
    page = describe_page(written.version)
    return {"success": True, "page": page, "message": f'Created page {page["name"]!r} with slug "/{page["slug"]}"'}


def create_page_with_content(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Create a page with sections and what they say, all at once: if one section is refused, there is no page."""
    locale, sections = choose_default_locale(arguments, access), _list_new_sections(arguments, access)

    def store(page_id: str) -> WrittenDocument:
        content = _build_page(arguments)
        for place, (model, fields) in enumerate(sections):
            section = PageSection(id=make_section_id(page_id, access, place), model=model)
            content = add_page_section(content, section)
            if fields:
                content = merge_section_content(content, section.id, locale, fields)
        models = list_section_models(content)
        return access.documents.create(PAGE_MODEL_ID, content, section_models=models, document_id=page_id)

    return _describe_new_page(store_under_new_id(access.resources, store).version, locale)


def _describe_new_page(version: DocumentVersion, locale: str) -> dict[str, Any]:
    page, content = describe_page(version), version.content
    assert content is not None, version.key
    sections = [
        {"id": section.id, "sectionKey": section.model, "sortOrder": place}
        for place, section in enumerate(list_page_sections(content))
    ]
    return {
        "success": True,
        "page": page | {"sections": sections},
        "navigationSuggestion": suggest_location(page["name"], page["slug"]),
        "previewUrl": f"/pages/{page['slug']}?locale={locale}",
        "nextSteps": ["Ask whether the page shall be in the navigation.", "Ask for images, if the page needs some."],
        "message": f'Created page {page["name"]!r} with slug "/{page["slug"]}" and {len(sections)} sections',
    }


def _build_page(arguments: dict[str, Any]) -> DocumentContent:
    name = _read_name(arguments)
    shared = {"indexing": arguments.get("indexing", True), "meta": arguments.get("meta")}
    content = DocumentContent(slug=arguments.get("slug") or make_slug(name), title=name)
    return content.with_fields(DEFINITION_LOCALE, shared)


def _read_name(arguments: dict[str, Any]) -> str:
    name = str(arguments.get("name") or arguments.get("title") or "").strip()
    if not name:
        raise InvalidRequest("Name the page in 'name'.")
    return name


def _list_new_sections(arguments: dict[str, Any], access: OpenedSpace) -> list[tuple[str, dict[str, Any]]]:
    """Return the section models and contents that a new page is to have; one hero that says its name by default."""
    given = arguments.get("sections")
    if given is None:
        return _build_default_sections(_read_name(arguments), access)
    sections = []
    for place, section in enumerate(given):
        model = section.get("sectionKey") or section.get("definitionId")
        if not isinstance(model, str):
            raise InvalidRequest(f"sections[{place}] names no 'sectionKey'.")
        sections.append((model, section.get("content") or {}))
    return sections


def _build_default_sections(name: str, access: OpenedSpace) -> list[tuple[str, dict[str, Any]]]:
    hero = read_write_basis(access.resources, access.space, [_DEFAULT_SECTION]).models.get(_DEFAULT_SECTION)
    if hero is None:
        return []
    heading = next((field for field in _HEADING_FIELDS if field in hero.model.fields), None)
    return [(_DEFAULT_SECTION, {heading: name} if heading else {})]


def update_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Change the name, the slug or the settings of a page."""

    def change(content: DocumentContent) -> DocumentContent:
        own = {"title": arguments.get("name"), "slug": arguments.get("slug")}
        changed = content.model_copy(update={name: value for name, value in own.items() if value})
        given: dict[str, Any] = {name: arguments[name] for name in ("indexing", "meta") if name in arguments}
        return changed.with_fields(DEFINITION_LOCALE, given)

    written = access.documents.update(DocumentKey(PAGE_MODEL_ID, arguments["id"]), change)
    page = describe_page(written.version)
    return {"success": True, "page": page, "message": f"Updated page {page['name']!r}"}


def delete_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete a page after the user has confirmed it, and the links to it if that is asked for. Its versions stay."""
    if arguments.get("confirmed") is not True:
        return _ask_about_page(_find_page(arguments, access), access)
    if access.has_been_done():  # what is left of a call that was repeated
        return _answer_deleted("the page", arguments, _find_deleted_slug(arguments, access), access)
    version = _find_page(arguments, access)
    page = describe_page(version)
    access.documents.delete(version.key)
    return _answer_deleted(page["name"], arguments, page["slug"], access)


def _answer_deleted(name: str, arguments: dict[str, Any], slug: str, access: OpenedSpace) -> dict[str, Any]:
    removed: list[str] = []

    def remove(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        removed[:] = [str(item["label"]) for item in items if is_link_to_page(str(item["href"]), slug)]
        return [item for item in items if item["label"] not in removed]

    if arguments.get("removeFromNavigation") and slug:
        change_navigation(access, remove, "/navigation")
    message = f"Deleted {name}. It can be restored from its versions."
    return {"success": True, "message": message, "removedFromNavigation": removed}


def _ask_about_page(version: DocumentVersion, access: OpenedSpace) -> dict[str, Any]:
    page = describe_page(version)
    links = [item for item in read_navigation_items(access) if is_link_to_page(str(item["href"]), page["slug"])]
    return {
        "success": False,
        "requiresConfirmation": True,
        "message": f"Delete {page['name']!r}? Ask the user, and call again with confirmed.",
        "page": {"id": page["id"], "slug": page["slug"], "name": page["name"]},
        "pageInNavigation": bool(links),
        "navigationLocations": sorted({str(item.get("location")) for item in links}),
    }


def _find_deleted_slug(arguments: dict[str, Any], access: OpenedSpace) -> str:
    if "slug" in arguments:
        return str(arguments["slug"]).strip("/")
    former = access.documents.read_before_deletion(DocumentKey(PAGE_MODEL_ID, arguments["id"]))
    return former.slug if former else ""


def _find_page(arguments: dict[str, Any], access: OpenedSpace) -> DocumentVersion:
    if "id" in arguments:
        return access.documents.read(DocumentKey(PAGE_MODEL_ID, arguments["id"]))
    if "slug" not in arguments:
        raise InvalidRequest("Name the page by 'id' or 'slug'.")
    return access.documents.find_by_slug(PAGE_MODEL_ID, arguments["slug"].strip("/"))


def make_slug(name: str) -> str:
    """Return a slug made of a name: its letters without accents and its digits, joined by hyphens."""
    plain = remove_marks(name.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "-", plain)[:_MAX_SLUG].strip("-")
    if len(slug) < 2:
        raise InvalidRequest("Name a slug, because none can be made of this name.")
    return slug
