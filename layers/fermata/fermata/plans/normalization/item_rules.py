"""Complete operations on the items of a block's list, and find those that a model has written as something else."""

import copy
import re
from collections.abc import Sequence
from typing import Any

from fermata.plans.block_types import list_item_words, make_default_item
from fermata.plans.normalization.member_names import LIST_OPERATIONS
from fermata.plans.normalization.plan_context import PlanContext, RawOperation, find_only_list
from fermata.plans.page_model import PageBlock
from fermata.plans.user_intent import LAST, asks_for_new_item, find_removed_item

_LIST_PATH = re.compile(r"/?(?P<key>[A-Za-z_]\w*)(?:\[(?P<index>\d{1,6})\]|[./](?P<dotted>\d{1,6}))?(?:[./][\w.-]+)?")
_TITLE_KEYS = ("title", "label", "name", "heading", "q", "quote", "text")
_WORDS_FOR_TITLE = ("label", "name", "text")
_ITEM_SYNONYMS = {"question": "q", "answer": "a", "testimonial": "quote", "review": "quote"}


def read_list_path(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Read list and index out of a path such as `cards[1].title`, `/items` or `items.0`."""
    if operation.get("op") not in LIST_OPERATIONS:
        return operation
    changed = dict(operation)
    for source in (operation.get("itemPath"), operation.get("path"), operation.get("listKey")):
        match = _LIST_PATH.fullmatch(source.strip()) if isinstance(source, str) else None
        if match is None or context.find_page(source):
            continue
        if not operation.get("listKey") or source == operation["listKey"]:
            changed["listKey"] = match["key"]
        index = match["index"] or match["dotted"]
        if index is not None and changed.get("index") is None:
            changed["index"] = int(index)
    return changed


def find_list_key(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Use the only list of the block, if the operation names none or one that the block does not have."""
    if operation.get("op") not in LIST_OPERATIONS:
        return operation
    block = context.find_target_block(operation)
    only_list = find_only_list(block)
    if block is None or only_list is None or isinstance(block.props.get(str(operation.get("listKey"))), list):
        return operation
    return {**operation, "listKey": only_list}


def complete_item(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Add a copy of the first item, if the operation says nothing about the new one."""
    if operation.get("op") != "add_item" or isinstance(operation.get("item"), dict):
        return operation
    patch = operation.get("patch")
    known = {"op", "pageSlug", "blockId", "listKey", "index", "afterIndex", "path", "itemPath", "item", "patch"}
    flat = patch if isinstance(patch, dict) else {key: one for key, one in operation.items() if key not in known}
    item = flat or _copy_first_item(context.find_target_block(operation), operation.get("listKey"))
    return {**operation, "item": item} if item else operation


def _copy_first_item(block: PageBlock | None, list_key: Any) -> dict[str, Any] | None:
    if block is None:
        return None
    items = block.props.get(list_key)
    first = next((item for item in items if isinstance(item, dict)), None) if isinstance(items, list) else None
    return copy.deepcopy(first) if first else make_default_item(block.type)


def rename_item_members(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Give the members of an item the names that the items of its list have."""
    member = {"add_item": "item", "update_item": "patch"}.get(str(operation.get("op")))
    values = operation.get(member) if member else None
    block = context.find_target_block(operation)
    if member is None or block is None or not isinstance(values, dict):
        return operation
    known = (_copy_first_item(block, operation.get("listKey")) or {}).keys()
    renamed: dict[str, Any] = {}
    for key, value in values.items():
        renamed.setdefault(_rename_item_member(key, known, values), value)
    return {**operation, member: renamed}


def _rename_item_member(key: str, known: Any, values: dict[str, Any]) -> str:
    if not known or key in known:
        return key
    synonym = _ITEM_SYNONYMS.get(key, key)
    if synonym in known and synonym not in values:
        return synonym
    if key == "name" and "author" in known and "author" not in values:
        return "author"
    preferred = next((one for one in _TITLE_KEYS if one in known), None)
    is_title = key in _WORDS_FOR_TITLE and preferred is not None and preferred not in values
    return preferred if is_title and preferred else key


def turn_into_remove_item(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Remove an item where a model removes the whole block, though the user speaks of one of its items."""
    block = context.find_target_block(operation)
    list_key = find_only_list(block)
    if operation.get("op") != "remove_block" or block is None or list_key is None:
        return operation
    index = _find_index(context.words, block, len(block.props[list_key]))
    index = operation["index"] if isinstance(operation.get("index"), int) else index
    if index is None:
        return operation
    return {**operation, "op": "remove_item", "listKey": list_key, "index": index}


def _find_index(words: Sequence[str], block: PageBlock, count: int) -> int | None:
    index = find_removed_item(words, list_item_words(block.type))
    if index is None or index >= count:
        return None
    return count - 1 if index == LAST else index


def turn_into_add_items(operation: RawOperation, context: PlanContext) -> RawOperation | list[RawOperation]:
    """Add items to the only block of a type, where a model adds a second block though the user speaks of an item."""
    page, added = context.find_target_page(operation), operation.get("block")
    if operation.get("op") != "add_block" or page is None or not isinstance(added, dict):
        return operation
    same = [block for block in page.blocks if block.type == added.get("type")]
    list_key = find_only_list(same[0]) if len(same) == 1 else None
    if list_key is None or not asks_for_new_item(context.words, list_item_words(same[0].type)):
        return operation
    items = added.get("props", {}).get(list_key)
    new_items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    target = {"op": "add_item", "pageSlug": page.slug, "blockId": same[0].id, "listKey": list_key}
    old_items = same[0].props[list_key]
    return [{**target, "item": item} for item in new_items if item not in old_items] or operation


def split_longer_list(operation: RawOperation, context: PlanContext) -> RawOperation | list[RawOperation]:
    """Add items where a model sends a whole list again that has grown at its end."""
    block, patch = context.find_target_block(operation), operation.get("patch")
    if operation.get("op") != "update_props" or block is None or not isinstance(patch, dict):
        return operation
    grown = [key for key, value in patch.items() if _is_grown(block.props.get(key), value)]
    if not grown:
        return operation
    target = {"op": "add_item", "pageSlug": operation["pageSlug"], "blockId": block.id}
    additions = [
        {**target, "listKey": key, "item": item} for key in grown for item in patch[key][len(block.props[key]) :]
    ]
    rest = {key: value for key, value in patch.items() if key not in grown}
    return [*([{**operation, "patch": rest}] if rest else []), *additions]


def _is_grown(before: Any, after: Any) -> bool:
    if not isinstance(before, list) or not isinstance(after, list) or len(after) <= len(before):
        return False
    return after[: len(before)] == before and all(isinstance(item, dict) for item in after)
