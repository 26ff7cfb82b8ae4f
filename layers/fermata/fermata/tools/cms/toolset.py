"""Assemble the tools of the CMS for pages and entries (decision 0410)."""

from collections.abc import Mapping
from typing import Any

from fermata.domain.caller import Capability
from fermata.tools.cms import entry_tools, page_tools
from fermata.tools.cms.input_schemas import (
    CREATE_ENTRY_SCHEMA,
    CREATE_PAGE_SCHEMA,
    DELETE_ENTRY_SCHEMA,
    DELETE_PAGE_SCHEMA,
    GET_COLLECTION_ENTRIES_SCHEMA,
    GET_ENTRY_CONTENT_SCHEMA,
    GET_PAGE_SCHEMA,
    GET_PAGES_SCHEMA,
    UPDATE_ENTRY_SCHEMA,
    UPDATE_PAGE_SCHEMA,
)
from fermata.tools.cms.store_handler import StoreHandler, answer_from_store
from fermata.tools.tool import Access, Execution, JsonInput, Risk, Tool
from fermata.tools.toolset import Toolset

_CAN_READ = frozenset({Capability.READ_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT})
_CAN_WRITE = frozenset({Capability.WRITE_CONTENT, Capability.CONTENT})
_TIMEOUT_SECONDS = 15.0


def _read(name: str, description: str, schema: Mapping[str, Any], handler: StoreHandler, *aliases: str) -> Tool:
    return Tool(
        name=name,
        toolset="cms",
        description=description,
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema=schema,
        handler=answer_from_store(handler),
        aliases=aliases,
        permissions=_CAN_READ,
        timeout_seconds=_TIMEOUT_SECONDS,
        idempotent=True,
    )


def _write(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    handler: StoreHandler,
    risk: Risk,
    *,
    confirmed: bool = False,
) -> Tool:
    return Tool(
        name=name,
        toolset="cms",
        description=description,
        execution=Execution.SERVER,
        access=Access.WRITE,
        input_model=JsonInput,
        declared_schema=schema,
        handler=answer_from_store(handler),
        permissions=_CAN_WRITE,
        risk=risk,
        confirmation_flag="confirmed" if confirmed else None,
        timeout_seconds=_TIMEOUT_SECONDS,
    )


CMS_PAGE_TOOLS = (
    _read("cms_getPages", "Lists the pages of the site.", GET_PAGES_SCHEMA, page_tools.get_pages, "cms_listPages"),
    _read(
        "cms_getPage",
        "Returns a page by id or slug, without the content of its sections unless it is asked for.",
        GET_PAGE_SCHEMA,
        page_tools.get_cms_page,
    ),
    _write("cms_createPage", "Creates a page.", CREATE_PAGE_SCHEMA, page_tools.create_cms_page, Risk.SAFE),
    _write(
        "cms_updatePage",
        "Changes the name, slug or settings of a page.",
        UPDATE_PAGE_SCHEMA,
        page_tools.update_page,
        Risk.MODERATE,
    ),
    _write(
        "cms_deletePage",
        "Deletes a page with its sections, once the user has confirmed it.",
        DELETE_PAGE_SCHEMA,
        page_tools.delete_page,
        Risk.HIGH,
        confirmed=True,
    ),
)
CMS_ENTRY_TOOLS = (
    _read(
        "cms_getCollectionEntries",
        "Lists the entries of a collection.",
        GET_COLLECTION_ENTRIES_SCHEMA,
        entry_tools.get_collection_entries,
    ),
    _read(
        "cms_getEntryContent",
        "Returns the content of an entry in one language.",
        GET_ENTRY_CONTENT_SCHEMA,
        entry_tools.get_entry_content,
    ),
    _write(
        "cms_createEntry",
        "Creates an entry of a collection as a draft.",
        CREATE_ENTRY_SCHEMA,
        entry_tools.create_entry,
        Risk.MODERATE,
    ),
    _write(
        "cms_updateEntry",
        "Changes the title of an entry, or fields of its content in one language.",
        UPDATE_ENTRY_SCHEMA,
        entry_tools.update_entry,
        Risk.MODERATE,
    ),
    _write(
        "cms_deleteEntry",
        "Deletes an entry, once the user has confirmed it.",
        DELETE_ENTRY_SCHEMA,
        entry_tools.delete_entry,
        Risk.HIGH,
        confirmed=True,
    ),
)
CMS_TOOLSET = Toolset("cms", (*CMS_PAGE_TOOLS, *CMS_ENTRY_TOOLS))
