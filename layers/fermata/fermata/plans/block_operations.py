"""Apply the operations on blocks and on the items of their lists."""

from typing import Any

from fermata.plans.operations import (
    AddBlock,
    AddItem,
    DuplicateBlock,
    MoveBlock,
    MoveItem,
    RemoveBlock,
    RemoveItem,
    UpdateItem,
    UpdateProps,
)
from fermata.plans.page_model import PageBlock
from fermata.plans.slugs import make_free_id
from fermata.plans.staged_site import OperationFailed, StagedSite, merge_patch

BlockOperation = (
    AddBlock | UpdateProps | RemoveBlock | MoveBlock | DuplicateBlock | AddItem | UpdateItem | RemoveItem | MoveItem
)


def apply_block_operation(site: StagedSite, operation: BlockOperation) -> bool:
    """Apply an operation on a block or on an item of its list.

    Returns:
        Whether it has changed anything.

    Raises:
        OperationFailed: It names what does not exist, or what may not be changed.
    """
    match operation:
        case AddBlock():
            return _add_block(site, operation)
        case UpdateProps():
            return _update_props(site, operation)
        case RemoveBlock():
            return _remove_block(site, operation)
        case MoveBlock():
            return _move_block(site, operation)
        case DuplicateBlock():
            return _duplicate_block(site, operation)
        case _:
            return _change_items(site, operation)


def _add_block(site: StagedSite, operation: AddBlock) -> bool:
    page = site.get_page(operation.page_slug)
    _require_ordinary(operation.block, "added")
    if page.find_block(operation.block.id) is not None:
        raise OperationFailed("schema_violation", f"PageBlock {operation.block.id} exists on {page.slug} already.")
    place = _find_place(
        list(page.blocks), operation.after_block_id, page.slug, default=_count_before_footer(page.blocks)
    )
    site.put_blocks(page, [*page.blocks[:place], operation.block, *page.blocks[place:]])
    return True


def _count_before_footer(blocks: tuple[PageBlock, ...]) -> int:
    """Return the place behind the last block that does not close the page."""
    count = len(blocks)
    while count and blocks[count - 1].is_chrome and "foot" in blocks[count - 1].type.lower():
        count -= 1
    return count


def _find_place(blocks: list[PageBlock], after_block_id: str | None, slug: str, *, default: int) -> int:
    if after_block_id is None:
        return default
    for index, block in enumerate(blocks):
        if block.id == after_block_id:
            return index + 1
    raise OperationFailed("not_found", f"There is no block {after_block_id} on {slug} to follow.")


def _require_ordinary(block: PageBlock, verb: str) -> None:
    if block.is_chrome:
        message = f"A block of type {block.type} frames every page and cannot be {verb} by a plan."
        raise OperationFailed("operation_failed", message)


def _update_props(site: StagedSite, operation: UpdateProps) -> bool:
    block = site.get_block(operation.page_slug, operation.block_id)
    return _put_props(site, operation.page_slug, block, merge_patch(block.props, operation.patch))


def _put_props(site: StagedSite, slug: str, block: PageBlock, props: dict[str, Any]) -> bool:
    if props == block.props:
        return False
    site.put_page(site.get_page(slug).replace_block(block.model_copy(update={"props": props})))
    return True


def _remove_block(site: StagedSite, operation: RemoveBlock) -> bool:
    block = site.get_block(operation.page_slug, operation.block_id)
    _require_ordinary(block, "removed")
    page = site.get_page(operation.page_slug)
    site.put_blocks(page, [one for one in page.blocks if one.id != block.id])
    return True


def _move_block(site: StagedSite, operation: MoveBlock) -> bool:
    block = site.get_block(operation.page_slug, operation.block_id)
    _require_ordinary(block, "moved")
    page = site.get_page(operation.page_slug)
    others = [one for one in page.blocks if one.id != block.id]
    top = next((index for index, one in enumerate(others) if not one.is_chrome), 0)
    place = _find_place(others, operation.after_block_id, page.slug, default=top)
    blocks = [*others[:place], block, *others[place:]]
    if blocks == list(page.blocks):
        return False
    site.put_blocks(page, blocks)
    return True


def _duplicate_block(site: StagedSite, operation: DuplicateBlock) -> bool:
    block = site.get_block(operation.page_slug, operation.block_id)
    _require_ordinary(block, "duplicated")
    page = site.get_page(operation.to_page_slug or operation.page_slug)
    is_same_page = page.slug == operation.page_slug
    anchor = operation.after_block_id or (block.id if is_same_page else None)
    place = _find_place(list(page.blocks), anchor, page.slug, default=_count_before_footer(page.blocks))
    taken = {one.id for one in page.blocks}
    if operation.new_block_id in taken:
        raise OperationFailed("schema_violation", f"PageBlock {operation.new_block_id} exists on {page.slug} already.")
    new_id = operation.new_block_id or make_free_id(f"{block.id}_copy", taken)
    site.put_blocks(page, [*page.blocks[:place], block.model_copy(update={"id": new_id}), *page.blocks[place:]])
    return True


def _change_items(site: StagedSite, operation: AddItem | UpdateItem | RemoveItem | MoveItem) -> bool:
    block = site.get_block(operation.page_slug, operation.block_id)
    items = block.props.get(operation.list_key)
    if not isinstance(items, list):
        lists = [key for key, value in block.props.items() if isinstance(value, list)]
        hint = f" Its lists are {', '.join(lists)}." if lists else " It has no list."
        raise OperationFailed("not_found", f"PageBlock {block.id} has no list {operation.list_key}.{hint}")
    changed = _edit_list(items, operation)
    return _put_props(site, operation.page_slug, block, {**block.props, operation.list_key: changed})


def _edit_list(items: list[Any], operation: AddItem | UpdateItem | RemoveItem | MoveItem) -> list[Any]:
    match operation:
        case AddItem():
            after = operation.after_index
            place = len(items) if after is None else min(after + 1, len(items))
            return [*items[:place], operation.item, *items[place:]]
        case UpdateItem():
            item = _get_item(items, operation.index)
            if not isinstance(item, dict):
                raise OperationFailed("schema_violation", f"Item {operation.index} is no object that has members.")
            return [*items[: operation.index], merge_patch(item, operation.patch), *items[operation.index + 1 :]]
        case RemoveItem():
            _get_item(items, operation.index)
            return [*items[: operation.index], *items[operation.index + 1 :]]
        case MoveItem():
            return _move_item(items, operation)


def _move_item(items: list[Any], operation: MoveItem) -> list[Any]:
    item = _get_item(items, operation.index)
    others = [*items[: operation.index], *items[operation.index + 1 :]]
    if operation.after_index is None or operation.after_index < 0:
        return [item, *others]
    _get_item(items, operation.after_index)
    # The anchor's index is of the list before the item is taken out of it.
    place = operation.after_index + (operation.after_index < operation.index)
    return [*others[:place], item, *others[place:]]


def _get_item(items: list[Any], index: int) -> Any:
    if index >= len(items):
        raise OperationFailed("not_found", f"There is no item {index}; the list has {len(items)}.")
    return items[index]
