"""List, read, create, change and delete entries of collections for the CMS tools."""

from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.list_documents import MAX_LISTED
from fermata.content.model_store import read_model
from fermata.content.opened_space import OpenedSpace
from fermata.tools.cms.store_handler import choose_default_locale, describe_entry, parse_entry_id


def get_collection_entries(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the first entries of a collection, with their content if it is asked for."""
    collection = arguments["collectionId"]
    state = read_model(access.resources, access.space, collection)
    heads = access.documents.list(collection, limit=MAX_LISTED).documents
    entries: list[dict[str, Any]] = [
        {"id": f"{head.model}.{head.id}", "slug": head.slug, "title": head.title, "status": head.status.value}
        for head in heads
    ]
    if arguments.get("includeContent"):
        locale = _choose_locale(state.model, arguments, access)
        versions = access.documents.read_listed(heads)
        for entry, head in zip(entries, heads, strict=True):
            version = versions.get(DocumentKey(head.model, head.id))
            content = version.content if version else None
            entry["content"] = dict(content.get_locale(locale)) if content else {}
    total = state.documents + access.documents.count_added(collection)
    message = f"Found {total} entries"
    return {
        "success": True, "collectionId": collection, "entries": entries, "count": len(entries),
        "total": total, "message": message,
    }  # fmt: skip


def get_entry_content(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the content of an entry in a language. One that is not translated is empty."""
    version = access.documents.read(parse_entry_id(arguments["entryId"]))
    state = read_model(access.resources, access.space, version.model)
    content = (
        dict(version.content.get_locale(_choose_locale(state.model, arguments, access))) if version.content else {}
    )
    entry = describe_entry(version)
    answer = {
        "success": True, "entryId": entry["id"], "slug": entry["slug"], "title": entry["title"],
        "localeCode": choose_default_locale(arguments, access), "content": content,
    }  # fmt: skip
    return answer if content else answer | {"message": "no content"}


def create_entry(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Create an entry as a draft."""
    collection = arguments["collectionId"]
    state = read_model(access.resources, access.space, collection)
    content = DocumentContent(slug=arguments["slug"], title=arguments["title"])
    content = content.with_fields(_choose_locale(state.model, arguments, access), arguments["content"])
    written = access.documents.create(collection, content)
    return {"success": True, "entry": describe_entry(written.version), "message": f"Created {content.title!r}"}


def update_entry(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Change the title of an entry, or fields of its content in a language. What is not named stays."""
    key = parse_entry_id(arguments["entryId"])
    locale = _choose_locale(read_model(access.resources, access.space, key.model).model, arguments, access)

    def change(content: DocumentContent) -> DocumentContent:
        title = arguments.get("title") or content.title
        return content.model_copy(update={"title": title}).with_fields(locale, arguments.get("content") or {})

    entry = describe_entry(access.documents.update(key, change).version)
    return {"success": True, "entry": entry, "message": f"Updated {entry['title']!r}"}


def delete_entry(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete an entry after the user has confirmed it. Its versions stay."""
    key: DocumentKey = parse_entry_id(arguments["entryId"])
    if arguments.get("confirmed") is not True:
        entry = describe_entry(access.documents.read(key))
        message = f"Delete {entry['title']!r}? Ask the user, and call again with confirmed."
        return {"success": False, "requiresConfirmation": True, "message": message, "entry": entry}
    access.documents.delete(key)
    return {"success": True, "message": "Deleted the entry. It can be restored from its versions."}


def _choose_locale(model: ContentModel, arguments: dict[str, Any], access: OpenedSpace) -> str:
    """Return where the content is: under the language, or under what is the same in all of them."""
    return choose_default_locale(arguments, access) if model.i18n else DEFINITION_LOCALE
