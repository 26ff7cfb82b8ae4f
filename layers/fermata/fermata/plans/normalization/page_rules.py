"""Complete operations on pages, and find those that a model has written as something else."""

import re
from collections.abc import Iterable
from typing import Any

from fermata.plans.normalization.block_rules import build_block
from fermata.plans.normalization.operation_names import NAME_MEMBERS, find_operation_name
from fermata.plans.normalization.plan_context import PlanContext, RawOperation
from fermata.plans.slugs import make_page_id, make_page_title, normalize_slug
from fermata.plans.user_intent import asks_for_new_page, asks_to_delete_page

_SLUG_MEMBERS = ("slug", "path", "route", "pageSlug", "newPageSlug")
_AFTER_WORDS = frozenset({"after", "below", "under", "behind"})
_NO_TITLE_WORD = re.compile(r"[^\w\s-]")
_META_MEMBERS = frozenset({"title", "description", "ogImage"})


def turn_into_rename_page(operation: RawOperation, context: PlanContext) -> RawOperation | None:
    """Rename a page where a model updates its slug as if it were a prop."""
    if operation.get("op") == "rename_page":
        return _complete_rename(operation, context)
    patch = operation.get("patch")
    if operation.get("op") != "update_props" or operation.get("blockId"):
        return operation
    patch = patch if isinstance(patch, dict) else {}
    written = operation.get("newPageSlug") or next((patch[name] for name in _SLUG_MEMBERS if patch.get(name)), None)
    mentioned = context.mentioned_slugs
    new_slug = normalize_slug(written) or (mentioned[-1] if len(mentioned) > 1 else None)
    old_slug = (
        operation.get("pageSlug") if operation.get("pageSlug") != new_slug else mentioned[0] if mentioned else None
    )
    if new_slug is None or old_slug is None or old_slug == new_slug:
        return _turn_into_meta(operation, patch, context)
    title = {"newTitle": patch["title"]} if isinstance(patch.get("title"), str) else {}
    return {"op": "rename_page", "pageSlug": old_slug, "newPageSlug": new_slug, **title}


def _turn_into_meta(operation: RawOperation, patch: dict[str, Any], context: PlanContext) -> RawOperation:
    page = context.find_target_page(operation)
    owners = [block for block in page.blocks if patch.keys() <= block.props.keys()] if page else []
    is_meta = bool(patch) and patch.keys() <= _META_MEMBERS and not owners
    return {**operation, "op": "update_page_meta"} if is_meta else operation


def _complete_rename(operation: RawOperation, context: PlanContext) -> RawOperation | None:
    mentioned = context.mentioned_slugs
    written = operation.get("newPageSlug") or operation.get("path")
    new_slug = normalize_slug(written) or (mentioned[-1] if len(mentioned) > 1 else None)
    old_slug = operation.get("pageSlug")
    if new_slug == old_slug and len(mentioned) > 1:
        old_slug = mentioned[0]
    if new_slug == old_slug:
        new_slug = None
    if new_slug is None and not operation.get("newTitle"):
        return None  # it renames nothing
    return {**operation, "pageSlug": old_slug, "newPageSlug": new_slug}


def turn_into_remove_page(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Remove a page where a model removes a block without naming it, and the user wants a page deleted."""
    is_block_removal = operation.get("op") == "remove_block" and not operation.get("blockId")
    if not is_block_removal or not asks_to_delete_page(context.words):
        return operation
    named = operation.get("pageSlug")
    mentioned = context.mentioned_slugs
    slug = mentioned[0] if named == context.default_slug and mentioned else named
    return {"op": "remove_page", "pageSlug": slug}


def list_created_slugs(operations: Iterable[Any]) -> set[str]:
    """Return the slugs of the pages that submitted operations create by themselves."""
    created = [one for one in operations if isinstance(one, dict) and _is_creation(one)]
    pages = (one["page"] if isinstance(one.get("page"), dict) else one for one in created)
    slugs = (normalize_slug(page.get("slug") or page.get("pageSlug") or page.get("page_slug")) for page in pages)
    return {slug for slug in slugs if slug}


def _is_creation(operation: RawOperation) -> bool:
    return any(find_operation_name(operation.get(name)) == "create_page" for name in NAME_MEMBERS)


def turn_into_create_page(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Create the page to which a model adds a first block, if the user wants a new page and there is none."""
    slug = operation.get("pageSlug")
    is_new = slug != context.default_slug and context.find_page(slug) is None
    if operation.get("op") != "add_block" or not is_new or not asks_for_new_page(context.words):
        return operation
    if slug in context.created_slugs:
        return operation
    context.created_slugs.add(str(slug))
    return {"op": "create_page", "pageSlug": slug, "page": {"slug": slug, "blocks": [operation.get("block")]}}


def turn_into_add_block(operation: RawOperation, context: PlanContext) -> RawOperation | list[RawOperation]:
    """Add blocks where a model creates the page that the user sees already."""
    if operation.get("op") != "create_page" or isinstance(operation.get("page"), dict):
        return operation
    slug = normalize_slug(operation.get("pageSlug") or operation.get("path"))
    if slug not in (None, context.default_slug) or asks_for_new_page(context.words):
        return operation
    raw_blocks = operation["blocks"] if isinstance(operation.get("blocks"), list) else [operation.get("block")]
    if raw_blocks == [None] and operation.get("blockType"):
        raw_blocks = [{"type": operation["blockType"], "props": operation.get("patch") or operation.get("props")}]
    blocks = [block for raw in raw_blocks if (block := build_block(raw, context))]
    chained: list[RawOperation] = []
    for index, block in enumerate(blocks):
        after = {"afterBlockId": blocks[index - 1]["id"]} if index else {}
        chained.append({"op": "add_block", "pageSlug": context.default_slug, "block": block, **after})
    return chained or operation


def complete_page(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Complete the page of `create_page`: slug, id, title, instant and blocks."""
    if operation.get("op") != "create_page":
        return operation
    page = operation["page"] if isinstance(operation.get("page"), dict) else {}
    mentioned = context.mentioned_slugs
    written = page.get("slug") or operation.get("pageSlug") or operation.get("path")
    slug = normalize_slug(written) or (mentioned[0] if mentioned else None) or _slug_from_title(page, operation)
    if slug is None:
        return operation
    blocks = page.get("blocks", operation.get("blocks", [operation.get("block")]))
    title = page.get("title") or operation.get("title")
    whole = {
        "id": page.get("id") or make_page_id(slug),
        "slug": slug,
        "title": title.strip() if isinstance(title, str) and title.strip() else make_page_title(slug),
        "updatedAt": page.get("updatedAt") or context.now,
        "blocks": [block for raw in _as_list(blocks) if (block := build_block(raw, context))],
        "meta": page.get("meta"),
    }
    given = {key: value for key, value in whole.items() if value is not None}
    return {"op": "create_page", "pageSlug": slug, "page": given}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _slug_from_title(page: dict[str, Any], operation: RawOperation) -> str | None:
    title = page.get("title") or operation.get("title")
    return normalize_slug(_NO_TITLE_WORD.sub("", title)) if isinstance(title, str) else None


def anchor_page(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Find the page to follow in the user's words."""
    is_moved = operation.get("op") in ("move_page", "duplicate_page")
    if not is_moved or operation.get("afterPageSlug") or len(context.mentioned_slugs) < 2:
        return operation
    is_after = not _AFTER_WORDS.isdisjoint(context.words)
    return {**operation, "afterPageSlug": context.mentioned_slugs[1]} if is_after else operation


def follow_created_pages(operations: list[RawOperation], context: PlanContext) -> list[RawOperation]:
    """Move each `create_page` before the operations on its page, and blocks for a new page to it."""
    created = [one["pageSlug"] for one in operations if one.get("op") == "create_page" and one.get("pageSlug")]
    if len(created) == 1 and asks_for_new_page(context.words):
        operations = [_move_to_page(one, created[0], context) for one in operations]
    ordered: list[RawOperation] = []
    waiting: dict[str, list[RawOperation]] = {slug: [] for slug in created}
    for operation in operations:
        slug = operation.get("pageSlug", "")
        if operation.get("op") == "create_page":
            ordered += [operation, *waiting.pop(slug, [])]
        elif slug in waiting:
            waiting[slug].append(operation)
        else:
            ordered.append(operation)
    return ordered


def _move_to_page(operation: RawOperation, slug: str, context: PlanContext) -> RawOperation:
    is_misplaced = operation.get("op") == "add_block" and operation.get("pageSlug") == context.default_slug
    if not is_misplaced or operation.get("afterBlockId"):
        return operation
    return {**operation, "pageSlug": slug}
