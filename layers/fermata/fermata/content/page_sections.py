"""Read and change the sections of a page. They are a list of the page, and each has content in every locale.

A page keeps `sections` under `data`, and under each locale the content of its sections by their ids. A section's id
begins with that of its page, so that it alone says where it is.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DOCUMENT_ID, DocumentContent
from fermata.domain.base import DomainModel
from fermata.domain.errors import InvalidRequest, NotFound

SectionStatus = Literal["published", "unpublished"]
SECTION_SEPARATOR = "."
MAX_SECTIONS = 30
_LINK_FIELD = re.compile(r".+(?:Link|Href)")


class PageSection(DomainModel):
    """A section of a page: its id, the section model that describes it, and whether it is shown."""

    id: Annotated[str, Field(max_length=100)]
    model: Annotated[str, Field(max_length=40)]
    status: SectionStatus = "published"


def list_page_sections(content: DocumentContent) -> list[PageSection]:
    """Return the sections of a page in their order.

    Raises:
        InvalidRequest: They are not described as sections are.
    """
    sections = content.get_locale(DEFINITION_LOCALE).get("sections", [])
    try:
        return [PageSection.from_wire(section) for section in sections]
    except (ValidationError, TypeError) as error:
        raise InvalidRequest("'sections' has to be a list of objects with 'id' and 'model'.") from error


def list_section_models(content: DocumentContent) -> tuple[str, ...]:
    """Return the section models that a document may name, also if it is no page or its sections are not valid."""
    sections = content.get_locale(DEFINITION_LOCALE).get("sections")
    named = (
        [section.get("model") for section in sections if isinstance(section, dict)]
        if isinstance(sections, list)
        else []
    )
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and DOCUMENT_ID.fullmatch(name)))[
        :MAX_SECTIONS
    ]


def count_section_models(content: DocumentContent) -> dict[str, int]:
    """Return how many sections a page has of each section model."""
    return dict(Counter(section.model for section in list_page_sections(content)))


def split_section_id(section_id: str) -> str:
    """Return the id of the page that a section is part of.

    Raises:
        NotFound: It is no id of a section.
    """
    page, separator, own = section_id.partition(SECTION_SEPARATOR)
    if not (page and separator and own):
        raise NotFound(f"There is no section {section_id[:80]}.")
    return page


def add_page_section(content: DocumentContent, section: PageSection, place: int | None = None) -> DocumentContent:
    """Return a page with one more section.

    Args:
        content: The page.
        section: The section; its content is empty.
        place: Before how many sections it stands; at the end without it.

    Raises:
        InvalidRequest: The page has as many sections as a page may have.
    """
    sections = list_page_sections(content)
    if len(sections) >= MAX_SECTIONS:
        raise InvalidRequest(f"A page has at most {MAX_SECTIONS} sections.")
    sections.insert(len(sections) if place is None else place, section)
    return _with_sections(content, sections)


def remove_page_sections(content: DocumentContent, section_ids: Sequence[str]) -> DocumentContent:
    """Return a page without some of its sections and their content, all of them or none.

    Raises:
        NotFound: The page does not have one of them.
    """
    sections = list_page_sections(content)
    known = {section.id for section in sections}
    missing = [one for one in section_ids if one not in known]
    if missing:
        raise NotFound(f"There is no section {', '.join(missing)}.")
    gone = set(section_ids)
    remaining = _with_sections(content, [section for section in sections if section.id not in gone])
    locales = {
        locale: {name: value for name, value in fields.items() if name not in gone}
        for locale, fields in remaining.locales.items()
    }
    return remaining.model_copy(update={"locales": locales})


def find_page_section(content: DocumentContent, section_id: str) -> PageSection:
    """Return a section of a page.

    Raises:
        NotFound: The page has no such section.
    """
    for section in list_page_sections(content):
        if section.id == section_id:
            return section
    raise NotFound(f"There is no section {section_id}.")


def merge_section_content(
    content: DocumentContent, section_id: str, locale: str, fields: Mapping[str, Any]
) -> DocumentContent:
    """Return a page with some fields of a section's content in one locale replaced.

    Args:
        content: The page.
        section_id: The section.
        locale: The language.
        fields: The new values. One that is null is removed; a link that is a text becomes an object.

    Raises:
        NotFound: The page has no such section.
    """
    find_page_section(content, section_id)
    before = content.get_locale(locale).get(section_id) or {}
    merged = {**before, **{name: normalize_link(name, value) for name, value in fields.items()}}
    kept = {name: value for name, value in merged.items() if value is not None}
    return content.with_fields(locale, {section_id: kept})


def normalize_link(name: str, value: Any) -> Any:
    """Return the value of a field; that of a link as an object, also if it was given as a text."""
    if isinstance(value, str) and _LINK_FIELD.fullmatch(name):
        return {"href": value, "type": "url"}
    return value


def _with_sections(content: DocumentContent, sections: Sequence[PageSection]) -> DocumentContent:
    return content.with_fields(DEFINITION_LOCALE, {"sections": [section.to_wire() for section in sections]})
