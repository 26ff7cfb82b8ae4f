"""Give the members of an operation their names, and their values the types that the schema asks for."""

import re
from typing import Any

from fermata.plans.normalization.plan_context import PlanContext, RawOperation
from fermata.plans.operations import OPERATION_CLASSES
from fermata.plans.slugs import normalize_slug

LIST_OPERATIONS = frozenset({"add_item", "update_item", "remove_item", "move_item"})
PATCH_OPERATIONS = frozenset({"update_props", "update_item", "update_page_meta", "update_site_config"})

_ALIASES = {
    "pageSlug": ("slug", "page", "route", "pagePath", "pageRoute", "fromPageSlug", "oldSlug", "oldPageSlug", "from"),
    "newPageSlug": ("newSlug", "targetSlug", "toPageSlug", "toSlug", "newPath", "newRoute", "to", "targetPageSlug"),
    "blockId": ("id", "block", "targetBlockId", "sourceBlockId", "fromBlockId", "sectionId", "componentId"),
    "listKey": ("list", "arrayKey", "arrayProp", "collection", "itemsKey", "listName", "listProp", "key", "field"),
    "index": ("itemIndex", "fromIndex", "position", "idx"),
    "afterIndex": ("toIndex", "targetIndex", "newIndex", "insertAfterIndex"),
    "item": ("newItem", "value", "data"),
    "afterBlockId": ("after", "afterId", "insertAfterId", "insertAfter", "anchorBlockId"),
    "beforeBlockId": ("before", "beforeId", "insertBeforeId", "insertBefore"),
    "afterPageSlug": ("after", "afterPage", "afterSlug", "anchorPageSlug"),
    "newBlockId": ("copiedBlockId", "copyId", "newId"),
    "newTitle": ("title", "newName"),
    "patch": ("props", "changes", "updates", "values", "properties", "fields"),
    "block": ("newBlock", "section", "component"),
    "page": ("newPage", "pageDoc"),
    "toPageSlug": ("targetPageSlug", "targetSlug", "newPageSlug", "to"),
    "blockType": ("type", "newBlockType", "targetBlockType", "componentType"),
}
_NO_NAME = re.compile(r"[^a-z0-9]")
_INTEGER = re.compile(r"-?\d{1,6}(?:\.0{1,6})?")
_COMMENTS = frozenset({"reason", "rationale", "comment", "explanation", "note", "why"})
"""Members in which models explain themselves. They are no props."""
_HELPERS = frozenset({"path", "itemPath", "beforeBlockId", "blockType", "blocks", "op", "pageSlug", "blockId", "props"})
_TEXT_ONLY = frozenset({"pageSlug", "newPageSlug", "blockId", "listKey", "afterBlockId", "beforeBlockId"}) | {
    "afterPageSlug",
    "newBlockId",
    "newTitle",
    "toPageSlug",
    "blockType",
}
_OBJECTS_ONLY = frozenset({"item", "patch", "block", "page"})


def _list_members(name: Any) -> set[str]:
    one = OPERATION_CLASSES.get(name)
    return {field.alias or key for key, field in one.model_fields.items()} if one else set()


def _squeeze(name: str) -> str:
    return _NO_NAME.sub("", name.lower())


def rename_members(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Rename the members that a model has named otherwise. A member with the right name counts before all others."""
    wanted = _list_wanted_members(operation.get("op"))
    sources = {_squeeze(key): key for key in reversed(list(operation))}
    renamed: RawOperation = {}
    used: set[str] = set()
    for member in wanted:
        for alias in (member, *_ALIASES.get(member, ())):
            key = sources.get(_squeeze(alias))
            if key is not None and key not in used and _fits(member, operation[key], alias):
                renamed[member] = operation[key]
                used.add(key)
                break
    rest = {key: value for key, value in operation.items() if key not in used and key not in _COMMENTS}
    return {"op": operation.get("op"), **renamed, **{_squeeze_helper(key): value for key, value in rest.items()}}


def _list_wanted_members(name: Any) -> list[str]:
    """Return the members whose aliases are read: those of the operation, and those from which others are derived."""
    members = _list_members(name)
    helpers = {"blockType", "beforeBlockId"} if name in ("add_block", "move_block", "update_props") else set()
    if name == "create_page":
        helpers = {"pageSlug", "block", "blockType"}
    if name in ("update_props", "remove_block"):
        helpers |= {"newPageSlug", "pageSlug", "listKey", "index", "blockType"}
    if name == "add_block":
        helpers |= {"blockId", "patch"}
    return [member for member in _ALIASES if member in members | helpers]


def _fits(member: str, value: Any, alias: str) -> bool:
    """Return whether a value can be what a member holds: `page` may be a slug or a whole page."""
    if member in _OBJECTS_ONLY:
        return isinstance(value, dict)
    if member in _TEXT_ONLY:
        return isinstance(value, str) and bool(value.strip())
    return value is not None


def _squeeze_helper(key: str) -> str:
    return next((helper for helper in ("path", "itemPath", "blocks") if _squeeze(helper) == _squeeze(key)), key)


def coerce_numbers(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Read indexes that are written as text or as a number with a point."""
    changed = dict(operation)
    for member in ("index", "afterIndex"):
        value = operation.get(member)
        text = str(value).strip() if isinstance(value, (str, float)) else ""
        if _INTEGER.fullmatch(text):
            changed[member] = int(float(text))
    return changed


def resolve_slugs(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Write slugs as the pages have them. Without one, the page that the user sees is meant."""
    changed = dict(operation)
    path = operation.get("path")
    if not changed.get("pageSlug") and isinstance(path, str) and path.startswith("/"):
        is_page_path = operation.get("op") not in LIST_OPERATIONS and operation.get("op") != "rename_page"
        changed["pageSlug"] = path if is_page_path else None
    for member in ("newPageSlug", "toPageSlug", "afterPageSlug"):
        if changed.get(member):
            changed[member] = _find_slug(changed[member], context) or changed[member]
    if operation.get("op") not in ("create_page", "update_site_config"):
        changed["pageSlug"] = _find_slug(changed.get("pageSlug"), context) or context.default_slug
        if operation.get("op") in LIST_OPERATIONS and changed["pageSlug"] == f"/{changed.get('listKey')}":
            changed["pageSlug"] = context.default_slug  # a list's path, and no page's
    return changed


def _find_slug(candidate: Any, context: PlanContext) -> str | None:
    if context.find_page(candidate):
        return str(candidate)
    by_id = next((page.slug for page in context.pages if page.id == candidate), None)
    return by_id or normalize_slug(candidate)


def collect_patch(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Collect the new values of an update, wherever they are: in `props` of the patch, or beside the other members."""
    if operation.get("op") not in PATCH_OPERATIONS:
        return operation
    known = _list_members(operation["op"]) | _HELPERS | {"newPageSlug", "listKey", "index"}
    flat = {key: value for key, value in operation.items() if key not in known}
    patch = operation.get("patch")
    inner = patch.get("props") if isinstance(patch, dict) and isinstance(patch.get("props"), dict) else patch
    if not isinstance(inner, dict) and not flat:
        return operation
    rest = {key: value for key, value in operation.items() if key in known}
    return {**rest, "patch": {**flat, **(inner if isinstance(inner, dict) else {})}}


def keep_known_members(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Drop what the operation does not have, and members without a value. An unknown operation keeps its members."""
    members = _list_members(operation.get("op"))
    if not members:
        return {key: value for key, value in operation.items() if value is not None}
    if operation.get("op") == "create_page":
        members = members | {"pageSlug"}
    order = ["op", "pageSlug", *sorted(members - {"op", "pageSlug"})]
    return {key: operation[key] for key in order if key in members and operation.get(key) is not None}
