"""List, read, add, change and delete sections of pages for the CMS tools, and show what sections can be."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import ModelState, read_write_basis
from fermata.content.model_store import list_content_models, read_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import (
    PageSection,
    add_page_section,
    find_page_section,
    list_page_sections,
    merge_section_content,
    remove_page_sections,
    split_section_id,
)
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.cms.store_handler import PAGE_MODEL_ID, choose_default_locale, describe_section


def get_page_sections(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the sections of a page in their order, with their content if it is asked for."""
    content = _read_page(access, arguments["pageId"])
    found = list_page_sections(content)
    models = read_section_models(access, found)
    texts = content.get_locale(choose_default_locale(arguments, access)) if arguments.get("includeContent") else None
    sections = [describe_section(one, place, models, texts) for place, one in enumerate(found)]
    return {
        "success": True, "pageId": arguments["pageId"], "count": len(sections), "sections": sections,
        "message": f"The page has {len(sections)} sections",
    }  # fmt: skip


def get_section_content(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the content of a section in a language. One that is not translated is empty."""
    section_id = arguments["pageSectionId"]
    page = _read_page(access, split_section_id(section_id))
    section = find_page_section(page, section_id)
    locale = choose_default_locale(arguments, access)
    content = page.get_locale(locale).get(section_id) or {}
    named = describe_section(section, 0, read_section_models(access, [section]), None)
    answer = {
        "success": True, "pageSectionId": section_id, "sectionKey": section.model,
        "sectionName": named["sectionName"], "localeCode": locale, "content": content,
    }  # fmt: skip
    return answer if content else answer | {"message": "no content"}


def list_section_defs(_arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return what sections can be."""
    models = [state.model for state in list_content_models(access.resources, access.space)]
    found = [model for model in models if model.kind is ModelKind.SECTION]
    listed = [
        {"id": model.id, "key": model.id, "name": model.title or model.id, "description": model.description}
        for model in found
    ]
    return {"success": True, "count": len(listed), "sectionDefs": listed, "message": f"Found {len(listed)} definitions"}


def get_section_def(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a section definition with its slots."""
    named = arguments.get("id") or arguments.get("key")
    if not named:
        raise InvalidRequest("Name the section definition by 'id' or 'key'.")
    model = _read_section_model(access, named)
    slots = [
        {"key": name, "type": field.type.value, "required": field.required}
        | ({"options": list(field.options)} if field.options else {})
        for name, field in model.fields.items()
    ]
    definition = {
        "id": model.id, "key": model.id, "name": model.title or model.id, "description": model.description,
        "status": "published", "elementsStructure": [{"slots": slots}],
    }  # fmt: skip
    return {"success": True, "sectionDef": definition, "message": f"{definition['name']} has {len(slots)} fields"}


def add_section(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Add an empty section to a page: at its end, or before as many sections as are named."""
    page_id = arguments["pageId"]
    model = _read_section_model(access, arguments["sectionDefId"])
    section = PageSection(
        id=make_section_id(page_id, access), model=model.id, status=arguments.get("status", "published")
    )
    access.documents.update(
        DocumentKey(PAGE_MODEL_ID, page_id),
        lambda page: add_page_section(page, section, arguments.get("sortOrder")),
        model.id,
    )
    message = f"Added {model.title or model.id} to the page"
    return {"success": True, "pageSectionId": section.id, "sectionDefId": model.id, "message": message}


def sync_section_content(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Set fields of a section in a language. What is not named stays, and what is null goes."""
    section_id, locale = arguments["pageSectionId"], choose_default_locale(arguments, access)
    written = access.documents.update(
        DocumentKey(PAGE_MODEL_ID, split_section_id(section_id)),
        lambda page: merge_section_content(page, section_id, locale, arguments["content"]),
    )
    content = written.version.content.get_locale(locale).get(section_id, {}) if written.version.content else {}
    result = {"content": content, "updatedAt": written.version.at}
    return {"success": True, "pageSectionId": section_id, "result": result, "message": "Updated the section"}


def delete_page_section(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete a section after the user has confirmed it."""
    section_id = arguments["pageSectionId"]
    page_id = split_section_id(section_id)
    if arguments.get("confirmed") is not True:
        section = find_page_section(_read_page(access, page_id), section_id)
        shown = {"id": section.id, "sectionKey": section.model}
        message = f"Delete the section {section.model} of this page? Ask the user, and call again with confirmed."
        return {"success": False, "requiresConfirmation": True, "message": message, "section": shown}
    _remove(access, page_id, [section_id])
    return {"success": True, "message": "Deleted the section. The page can be restored from its versions."}


def delete_sections(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete sections of one page after the user has confirmed it: all of them, or none."""
    section_ids = list(dict.fromkeys(arguments["pageSectionIds"]))
    pages = {split_section_id(section_id) for section_id in section_ids}
    page_id = arguments.get("pageId") or next(iter(pages))
    if pages != {page_id}:
        raise InvalidRequest(
            "These sections are not all of one page. Delete those of each page with a call of its own."
        )
    if arguments.get("confirmed") is not True:
        remove_page_sections(_read_page(access, page_id), section_ids)
        message = f"Delete {len(section_ids)} sections? Ask the user, and call again with confirmed."
        return {
            "success": False, "requiresConfirmation": True, "message": message, "sectionCount": len(section_ids),
        }  # fmt: skip
    _remove(access, page_id, section_ids)
    return {"success": True, "deletedCount": len(section_ids), "message": f"Deleted {len(section_ids)} sections"}


def make_section_id(page_id: str, access: OpenedSpace, place: int = 0) -> str:
    """Return the id of a new section, which is the same for a repeated call.

    Args:
        page_id: The page.
        access: Has the effect key of the call.
        place: Which of several new sections it is.
    """
    own = hashlib.sha256(access.effect_key.encode()).hexdigest()[:8] if access.effect_key else secrets.token_hex(4)
    return f"{page_id}.{own}{f'-{place}' if place else ''}"


def read_section_models(access: OpenedSpace, sections: Sequence[PageSection]) -> dict[str, ModelState]:
    """Return the models of sections by id, with one request."""
    names = dict.fromkeys(section.model for section in sections)
    return read_write_basis(access.resources, access.space, names).models if names else {}


def _read_page(access: OpenedSpace, page_id: str) -> DocumentContent:
    content = access.documents.read(DocumentKey(PAGE_MODEL_ID, page_id)).content
    assert content is not None, page_id
    return content


def _read_section_model(access: OpenedSpace, model_id: str) -> ContentModel:
    model = read_model(access.resources, access.space, model_id).model
    if model.kind is not ModelKind.SECTION:
        raise NotFound(f"There is no section definition {model_id}.")
    return model


def _remove(access: OpenedSpace, page_id: str, section_ids: Sequence[str]) -> None:
    access.documents.update(DocumentKey(PAGE_MODEL_ID, page_id), lambda page: remove_page_sections(page, section_ids))
