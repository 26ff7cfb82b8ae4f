"""Define the sixteen operations of an edit plan."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter, model_validator

from fermata.domain.base import DomainModel
from fermata.plans.page_model import Page, PageBlock, SiteConfig

Slug = Annotated[str, Field(pattern=r"^/\S*$", max_length=200)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Index = Annotated[int, Field(ge=0, le=100_000)]


class CreatePage(DomainModel):
    """Add a page at the end."""

    op: Literal["create_page"]
    page: Page


class AddBlock(DomainModel):
    """Add a block behind another one; without `after_block_id` at the end of the page."""

    op: Literal["add_block"]
    page_slug: Slug
    block: PageBlock
    after_block_id: Id | None = None


class UpdateProps(DomainModel):
    """Change props of a block. A prop of null is removed."""

    op: Literal["update_props"]
    page_slug: Slug
    block_id: Id
    patch: dict[str, Any]


class RemoveBlock(DomainModel):
    """Remove a block."""

    op: Literal["remove_block"]
    page_slug: Slug
    block_id: Id


class MoveBlock(DomainModel):
    """Move a block behind another one; without `after_block_id` to the top."""

    op: Literal["move_block"]
    page_slug: Slug
    block_id: Id
    after_block_id: Id | None = None


class DuplicateBlock(DomainModel):
    """Copy a block, also to another page. The copy follows its original unless an anchor is named."""

    op: Literal["duplicate_block"]
    page_slug: Slug
    block_id: Id
    to_page_slug: Slug | None = None
    new_block_id: Id | None = None
    after_block_id: Id | None = None


class AddItem(DomainModel):
    """Add an item to a list of a block; without `after_index` at its end."""

    op: Literal["add_item"]
    page_slug: Slug
    block_id: Id
    list_key: Id
    item: dict[str, Any]
    after_index: Annotated[int, Field(ge=-1, le=100_000)] | None = None


class UpdateItem(DomainModel):
    """Change members of a list's item. A member of null is removed."""

    op: Literal["update_item"]
    page_slug: Slug
    block_id: Id
    list_key: Id
    index: Index
    patch: dict[str, Any]


class RemoveItem(DomainModel):
    """Remove an item of a list."""

    op: Literal["remove_item"]
    page_slug: Slug
    block_id: Id
    list_key: Id
    index: Index


class MoveItem(DomainModel):
    """Move an item of a list behind another one; without `after_index` to the top."""

    op: Literal["move_item"]
    page_slug: Slug
    block_id: Id
    list_key: Id
    index: Index
    after_index: Annotated[int, Field(ge=-1, le=100_000)] | None = None


class RenamePage(DomainModel):
    """Give a page another slug, another title, or both. Links to it follow."""

    op: Literal["rename_page"]
    page_slug: Slug
    new_page_slug: Slug | None = None
    new_title: Annotated[str, Field(min_length=1, max_length=300)] | None = None

    @model_validator(mode="after")
    def _check_change(self) -> "RenamePage":
        if self.new_page_slug is None and self.new_title is None:
            raise ValueError("newPageSlug or newTitle is needed")
        return self


class RemovePage(DomainModel):
    """Remove a page, which is neither the home page nor the last one."""

    op: Literal["remove_page"]
    page_slug: Slug


class MovePage(DomainModel):
    """Move a page behind another one; without `after_page_slug` to the top, behind the home page."""

    op: Literal["move_page"]
    page_slug: Slug
    after_page_slug: Slug | None = None


class DuplicatePage(DomainModel):
    """Copy a page. The copy follows its original unless an anchor is named."""

    op: Literal["duplicate_page"]
    page_slug: Slug
    new_page_slug: Slug | None = None
    new_title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    after_page_slug: Slug | None = None


class PageMetaPatch(DomainModel):
    """What `update_page_meta` changes."""

    title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    description: str | None = None
    og_image: str | None = None


class UpdatePageMeta(DomainModel):
    """Change the title and the descriptions of a page."""

    op: Literal["update_page_meta"]
    page_slug: Slug
    patch: PageMetaPatch


class UpdateSiteConfig(DomainModel):
    """Change settings that all pages share. Labels of the navigation are merged."""

    op: Literal["update_site_config"]
    patch: SiteConfig


PlanOperation = (
    CreatePage
    | AddBlock
    | UpdateProps
    | RemoveBlock
    | MoveBlock
    | DuplicateBlock
    | AddItem
    | UpdateItem
    | RemoveItem
    | MoveItem
    | RenamePage
    | RemovePage
    | MovePage
    | DuplicatePage
    | UpdatePageMeta
    | UpdateSiteConfig
)
PLAN_OPERATIONS: TypeAdapter[tuple[PlanOperation, ...]] = TypeAdapter(
    tuple[Annotated[PlanOperation, Field(discriminator="op")], ...]
)
OPERATION_CLASSES: dict[str, type[DomainModel]] = {
    get_args(one.model_fields["op"].annotation)[0]: one for one in get_args(PlanOperation)
}
"""The class of every operation by its `op`."""
STRUCTURAL_OPERATIONS = frozenset(
    {"add_block", "remove_block", "move_block", "duplicate_block", "add_item", "remove_item", "move_item"}
)
"""Operations that an editor may switch off: they change which blocks and items there are, and not what they say."""


def list_touched_slugs(operation: PlanOperation) -> tuple[str, ...]:
    """Return the slugs of the pages that an operation changes, as far as it names them.

    The original of a copy is not changed. The copy has no name if the operation gives it none (`make_copy_slug`).
    """
    match operation:
        case UpdateSiteConfig():
            return ()
        case CreatePage():
            return (operation.page.slug,)
        case DuplicatePage():
            return (operation.new_page_slug,) if operation.new_page_slug else ()
        case DuplicateBlock():
            return (operation.to_page_slug or operation.page_slug,)
        case _:
            return (operation.page_slug,)
