"""Complete operations on blocks: which block, which type, its props, and its place."""

from typing import Any

from fermata.plans.block_types import find_block_type, find_type_in_message, make_default_props
from fermata.plans.normalization.plan_context import PlanContext, RawOperation, find_only_list
from fermata.plans.page_model import Page, PageBlock

_BLOCK_OPERATIONS = frozenset(
    {
        "update_props",
        "remove_block",
        "move_block",
        "duplicate_block",
        "add_item",
        "update_item",
        "remove_item",
        "move_item",
    }
)
_END_WORDS = frozenset({"bottom", "end", "last"})


def find_block_id(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Find the block of an operation that names none: by its type, by the props it changes, or by the user's words."""
    page = context.find_target_page(operation)
    if operation.get("op") not in _BLOCK_OPERATIONS or operation.get("blockId") or page is None:
        return operation
    block = _find_by_type(operation, page) or _find_by_props(operation, page) or _find_by_message(context, page)
    return {**operation, "blockId": block.id} if block else operation


def _find_by_type(operation: RawOperation, page: Page) -> PageBlock | None:
    named = operation.get("blockType")
    block_type = find_block_type(named) if isinstance(named, str) else None
    return _find_only(page, block_type or named)


def _find_only(page: Page, block_type: object) -> PageBlock | None:
    blocks = [block for block in page.blocks if block.type == block_type]
    return blocks[0] if len(blocks) == 1 else None


def _find_by_props(operation: RawOperation, page: Page) -> PageBlock | None:
    """Return the only block that has all props of a patch, or the list of an operation on items."""
    patch, list_key = operation.get("patch"), operation.get("listKey")
    if operation.get("op") == "update_props" and isinstance(patch, dict) and patch:
        owners = [block for block in page.blocks if patch.keys() <= block.props.keys()]
    elif isinstance(list_key, str):
        owners = [block for block in page.blocks if isinstance(block.props.get(list_key), list)]
    else:
        owners = []
    return owners[0] if len(owners) == 1 else None


def _find_by_message(context: PlanContext, page: Page) -> PageBlock | None:
    return _find_only(page, find_type_in_message(context.message))


def resolve_block_path(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Read a block's id that stands in `path`, and a block that is named by its type instead of its id."""
    page = context.find_target_page(operation)
    block_id, path = operation.get("blockId"), operation.get("path")
    if not block_id and isinstance(path, str) and path.startswith("b_"):
        return {**operation, "blockId": path}
    if operation.get("op") not in _BLOCK_OPERATIONS or not isinstance(block_id, str) or page is None:
        return operation
    if page.find_block(block_id) is not None:
        return operation
    named = _find_only(page, find_block_type(block_id)) if block_id.isalpha() else None
    return {**operation, "blockId": named.id} if named else operation


def complete_block(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Complete the block of `add_block`: the spelling of its type, default props, and an id."""
    if operation.get("op") != "add_block":
        return operation
    block = operation.get("block")
    given = dict(block) if isinstance(block, dict) else {}
    given.setdefault("type", operation.get("blockType"))
    if not isinstance(given.get("props"), dict):
        given["props"] = operation.get("patch")
    if not given.get("id"):
        given["id"] = operation.get("blockId")
    completed = build_block(given, context)
    return {**operation, "block": completed} if completed else operation


def build_block(raw: Any, context: PlanContext) -> dict[str, Any] | None:
    """Return a whole block: type in the known spelling, props over the defaults, and an id. None without a type."""
    if not isinstance(raw, dict):
        return None
    named = raw.get("type") or raw.get("blockType")
    if not isinstance(named, str) or not named.strip():
        return None
    is_own_type = any(block.type == named for page in context.pages for block in page.blocks)
    block_type = named if is_own_type else find_block_type(named) or named
    known = {"id", "type", "blockType", "props"}
    flat = {key: value for key, value in raw.items() if key not in known}
    props = raw["props"] if isinstance(raw.get("props"), dict) else flat
    block_id = raw.get("id")
    if not isinstance(block_id, str) or not block_id.strip():
        block_id = context.make_block_id(block_type)
    return {"id": block_id, "type": block_type, "props": {**make_default_props(block_type), **props}}


def rename_props(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Give props the names that the block has: `title` outside of a hero, and the name of its only list."""
    block, patch = context.find_target_block(operation), operation.get("patch")
    if operation.get("op") != "update_props" or block is None or not isinstance(patch, dict):
        return operation
    renamed = {_rename_prop(key, value, block): value for key, value in patch.items()}
    return {**operation, "patch": {key: _spell_boolean(key, value, block) for key, value in renamed.items()}}


def _rename_prop(key: str, value: Any, block: PageBlock) -> str:
    if key in block.props:
        return key
    if key == "heading" and block.type != "Hero":
        return "title"
    only_list = find_only_list(block)
    is_list = isinstance(value, list) and only_list is not None
    return only_list if is_list and only_list else key


def _spell_boolean(key: str, value: Any, block: PageBlock) -> Any:
    """Write a boolean as the text that the block has there."""
    is_text = block.props.get(key) in ("true", "false")
    return str(value).lower() if isinstance(value, bool) and is_text else value


def anchor_block(operation: RawOperation, context: PlanContext) -> RawOperation:
    """Find the block to follow: that before `beforeBlockId`, or the last one if the user wants the end of the page."""
    page = context.find_target_page(operation)
    if operation.get("op") not in ("move_block", "add_block") or operation.get("afterBlockId") or page is None:
        return operation
    before = operation.get("beforeBlockId")
    ids = [block.id for block in page.blocks if not block.is_chrome and block.id != _get_moved_id(operation)]
    if before in ids:
        place = ids.index(before)
        return {**operation, "afterBlockId": ids[place - 1]} if place else operation
    if ids and not _END_WORDS.isdisjoint(context.words):
        return {**operation, "afterBlockId": ids[-1]}
    return operation


def _get_moved_id(operation: RawOperation) -> Any:
    block = operation.get("block")
    return block.get("id") if isinstance(block, dict) else operation.get("blockId")
