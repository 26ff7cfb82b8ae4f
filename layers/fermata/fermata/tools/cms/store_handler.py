"""Open the content store for a tool, and answer with its documents or with an error that has a code."""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.documents.read_document import ModelState
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import PageSection, list_page_sections
from fermata.content.space_members import require_membership
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, Forbidden
from fermata.domain.tools import ToolOutput
from fermata.tools.tool import JsonInput, ToolContext, ToolFailure

PAGE_MODEL_ID = "page"
ENTRY_SEPARATOR = "."
"""Between the collection and the document in the id of an entry, which alone says where it is."""
_CODES = {
    400: "VALIDATION_FAILED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "CONFLICT",
    412: "CONFLICT",
    413: "VALIDATION_FAILED",
    429: "RATE_LIMITED",
    503: "EXTERNAL_SERVICE_ERROR",
}
StoreHandler = Callable[[dict[str, Any], OpenedSpace], dict[str, Any]]


def answer_from_store(handler: StoreHandler) -> Callable[[JsonInput, ToolContext], ToolOutput]:
    """Make the handler of a tool from a function of its arguments and the opened store."""

    def handle(tool_input: JsonInput, context: ToolContext) -> ToolOutput:
        access = context.open_content()
        if access is None:
            raise ToolFailure("No site is chosen. Ask the user which site and environment to work on.")
        _check_membership(access, context)
        try:
            return ToolOutput.success(_say_what_waits(handler(tool_input.arguments, access), access))
        except ApiError as error:
            code = _CODES.get(error.status, "INTERNAL_ERROR")
            data = {"success": False, "error": error.message, "errorCode": code}
            return ToolOutput(ok=False, error=error.message, data=data, conflict=code == "CONFLICT" or None)

    return handle


def _say_what_waits(answer: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Tell the model of a change that it is not live, because somebody reviews it first."""
    change_set = access.documents.changed_in
    if not change_set:
        return answer
    done = str(answer.get("message", "")).rstrip(".")
    waits = f"It is in the change set {change_set}, and live when somebody has reviewed and merged that."
    message = f"{done}. {waits}" if done else waits
    return answer | {"changeSet": change_set, "waitsForReview": True, "message": message}


def _check_membership(access: OpenedSpace, context: ToolContext) -> None:
    """Refuse a call in a site with a list of members, of which the caller may not edit all (decision 0424)."""
    caller = Caller(tenant=context.tenant, user=context.user, capabilities=context.capabilities)
    try:
        member = require_membership(access.resources, access.space, caller)
    except Forbidden as error:
        raise ToolFailure(error.message) from None
    if member is not None and (member.role != "editor" or member.is_restricted):
        raise ToolFailure("The user may not edit all of this site, which this agent needs. The studio's agent works.")


def describe_page(version: DocumentVersion) -> dict[str, Any]:
    """Return a page without the content of its sections."""
    content = version.content
    assert content is not None
    shared = content.get_locale(DEFINITION_LOCALE)
    sections = list_page_sections(content)
    return {
        "id": version.id,
        "slug": content.slug,
        "name": content.title,
        "title": content.title,
        "status": content.status.value,
        "indexing": shared.get("indexing", True),
        "meta": shared.get("meta", {}),
        "sectionIds": [section.id for section in sections],
        "sectionCount": len(sections),
    }


def describe_section(
    section: PageSection, place: int, models: Mapping[str, ModelState], texts: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a section of a page.

    Args:
        section: The section.
        place: Behind how many others it stands.
        models: The section models by id, for its name.
        texts: The content of the page's sections in one language; None to leave it out.
    """
    state = models.get(section.model)
    described: dict[str, Any] = {
        "id": section.id,
        "sectionDefId": section.model,
        "sectionKey": section.model,
        "sectionName": (state.model.title if state else "") or section.model,
        "sortOrder": place,
        "status": section.status,
    }
    return described if texts is None else described | {"content": texts.get(section.id, {})}


def choose_default_locale(arguments: Mapping[str, Any], access: OpenedSpace) -> str:
    """Return the language that a call names, or the default one of the site."""
    return str(arguments.get("localeCode") or access.default_locale)


def describe_entry(version: DocumentVersion) -> dict[str, Any]:
    """Return an entry without its content."""
    content = version.content
    assert content is not None
    entry_id = f"{version.model}{ENTRY_SEPARATOR}{version.id}"
    return {"id": entry_id, "slug": content.slug, "title": content.title, "status": content.status.value}


def parse_entry_id(entry_id: str) -> DocumentKey:
    """Return the document of an entry's id. A text that is no such id names no document."""
    model, _, document_id = entry_id.partition(ENTRY_SEPARATOR)
    return DocumentKey(model, document_id)
