"""List, read, create, change and delete pages for the CMS tools."""

import re
import unicodedata
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import MAX_LISTED, list_documents
from fermata.content.documents.read_document import find_document_by_slug, read_document
from fermata.content.model_store import read_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import list_page_sections
from fermata.domain.errors import InvalidRequest
from fermata.tools.cms.store_handler import describe_page

PAGE_MODEL_ID = "page"
_MAX_SLUG = 64


def get_pages(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a page of the list of pages."""
    limit = min(max(1, arguments.get("limit", 100)), MAX_LISTED)
    page = list_documents(access.resources, access.space, PAGE_MODEL_ID, limit=limit, after=arguments.get("cursor", ""))
    total = read_model(access.resources, access.space, PAGE_MODEL_ID).documents
    pages = [{"id": head.id, "name": head.title, "slug": head.slug} for head in page.documents]
    answer = {"success": True, "pages": pages, "total": total, "message": f"Found {total} pages"}
    return answer | ({"nextCursor": page.after} if page.after else {})


def get_cms_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a page, with the content of its sections if it is asked for."""
    version = _find_page(arguments, access)
    page = describe_page(version)
    if arguments.get("includeContent") and version.content is not None:
        texts = version.content.get_locale(arguments.get("localeCode", "en"))
        page["sections"] = [
            {
                "id": section.id,
                "sectionDefId": section.model,
                "sectionKey": section.model,
                "sortOrder": place,
                "status": section.status,
                "content": texts.get(section.id, {}),
            }
            for place, section in enumerate(list_page_sections(version.content))
        ]
    return {"success": True, "page": page, "message": f"Page {page['name']!r}"}


def create_cms_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Create a page. Without a slug it gets one that is made of its name."""
    if arguments.get("sections"):
        raise InvalidRequest("Create the page first, and then add its sections to it.")
    name = arguments["name"]
    shared = {"indexing": arguments.get("indexing", True), "meta": arguments.get("meta")}
    content = DocumentContent(slug=arguments.get("slug") or make_slug(name), title=name)
    content = content.with_fields(DEFINITION_LOCALE, shared)
    written = create_document(
        access.resources, access.space, PAGE_MODEL_ID, access.author, content, effect_key=access.effect_key
    )
    page = describe_page(written.version)
    return {"success": True, "page": page, "message": f'Created page {name!r} with slug "/{page["slug"]}"'}


def update_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Change the name, the slug or the settings of a page."""

    def change(content: DocumentContent) -> DocumentContent:
        own = {"title": arguments.get("name"), "slug": arguments.get("slug")}
        changed = content.model_copy(update={name: value for name, value in own.items() if value})
        given: dict[str, Any] = {name: arguments[name] for name in ("indexing", "meta") if name in arguments}
        return changed.with_fields(DEFINITION_LOCALE, given)

    key = DocumentKey(PAGE_MODEL_ID, arguments["id"])
    written = update_document(access.resources, access.space, key, access.author, change, access.build_options())
    page = describe_page(written.version)
    return {"success": True, "page": page, "message": f"Updated page {page['name']!r}"}


def delete_page(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete a page after the user has confirmed it. Its versions stay."""
    if "id" in arguments:  # a repeated call finds no page, but what it has done
        name, page_id = "the page", arguments["id"]
    else:
        version = _find_page(arguments, access)
        name, page_id = describe_page(version)["name"], version.id
    if arguments.get("confirmed") is not True:
        page = describe_page(read_document(access.resources, access.space, DocumentKey(PAGE_MODEL_ID, page_id)))
        return {
            "success": False,
            "requiresConfirmation": True,
            "message": f"Delete {page['name']!r}? Ask the user, and call again with confirmed.",
            "page": {"id": page["id"], "slug": page["slug"], "name": page["name"]},
        }
    key = DocumentKey(PAGE_MODEL_ID, page_id)
    delete_document(access.resources, access.space, key, access.author, access.build_options())
    return {"success": True, "message": f"Deleted {name}. It can be restored from its versions."}


def _find_page(arguments: dict[str, Any], access: OpenedSpace) -> DocumentVersion:
    if "id" in arguments:
        return read_document(access.resources, access.space, DocumentKey(PAGE_MODEL_ID, arguments["id"]))
    if "slug" not in arguments:
        raise InvalidRequest("Name the page by 'id' or 'slug'.")
    return find_document_by_slug(access.resources, access.space, PAGE_MODEL_ID, arguments["slug"].strip("/"))


def make_slug(name: str) -> str:
    """Return a slug made of a name: its letters without accents and its digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "-", plain)[:_MAX_SLUG].strip("-")
    if len(slug) < 2:
        raise InvalidRequest("Name a slug, because none can be made of this name.")
    return slug
