"""Hold the pages that a plan changes while it is applied, so that a failure leaves the draft as it was."""

from collections.abc import Mapping
from typing import Any

from fermata.domain.base import DomainModel
from fermata.plans.edit_plan import PlanErrorCategory
from fermata.plans.page_model import HOME_SLUG, Page, PageBlock, SiteDraft


class OperationFailed(Exception):
    """An operation cannot be applied. `category` says what kind of mistake it is."""

    def __init__(self, category: PlanErrorCategory, message: str) -> None:
        super().__init__(message)
        self.category = category
        self.message = message


class StagedSite:
    """A copy of a draft that operations change. The draft itself never changes."""

    def __init__(self, draft: SiteDraft, now: str) -> None:
        """Begin with a draft.

        Args:
            now: The ISO instant at which changed pages are marked as updated.
        """
        self.now = now
        self.config = draft.config
        self._pages = {page.slug: page for page in draft.pages}

    @property
    def slugs(self) -> list[str]:
        """The slugs of the pages, in their order."""
        return list(self._pages)

    def has_page(self, slug: str) -> bool:
        """Return whether there is a page with this slug."""
        return slug in self._pages

    def get_page(self, slug: str) -> Page:
        """Return a page.

        Raises:
            OperationFailed: There is none.
        """
        if slug not in self._pages:
            raise OperationFailed("not_found", f"There is no page {slug}. The pages are {', '.join(self._pages)}.")
        return self._pages[slug]

    def get_block(self, page_slug: str, block_id: str) -> PageBlock:
        """Return a block of a page.

        Raises:
            OperationFailed: There is no such page or block.
        """
        page = self.get_page(page_slug)
        block = page.find_block(block_id)
        if block is None:
            known = ", ".join(f"{one.id} ({one.type})" for one in page.blocks) or "none"
            raise OperationFailed("not_found", f"There is no block {block_id} on {page_slug}. Its blocks are {known}.")
        return block

    def put_page(self, page: Page) -> None:
        """Store a changed page, or a new one at the end."""
        self._pages[page.slug] = page.model_copy(update={"updated_at": self.now})

    def put_blocks(self, page: Page, blocks: list[PageBlock]) -> None:
        """Store a page with other blocks."""
        self.put_page(page.model_copy(update={"blocks": tuple(blocks)}))

    def remove_page(self, slug: str) -> None:
        """Remove a page that is there."""
        del self._pages[slug]

    def replace_slug(self, old_slug: str, page: Page) -> None:
        """Put a page that has another slug now at the place of the old one."""
        renamed = page.model_copy(update={"updated_at": self.now})
        self._pages = {
            (page.slug if slug == old_slug else slug): (renamed if slug == old_slug else one)
            for slug, one in self._pages.items()
        }

    def place_page(self, slug: str, after_slug: str | None) -> None:
        """Move a page behind another one, or to the top. The home page stays the first.

        Raises:
            OperationFailed: The page to move behind does not exist.
        """
        page = self.get_page(slug)
        others = [one for one in self._pages if one != slug]
        if after_slug is not None and after_slug not in others:
            raise OperationFailed("not_found", f"There is no page {after_slug} to follow.")
        place = others.index(after_slug) + 1 if after_slug is not None else 0
        if others and others[0] == HOME_SLUG:
            place = max(place, 1)
        order = [*others[:place], slug, *others[place:]]
        self._pages = {one: page if one == slug else self._pages[one] for one in order}

    def to_draft(self) -> SiteDraft:
        """Return the pages as they are now."""
        return SiteDraft(pages=tuple(self._pages.values()), config=self.config)


def merge_patch(values: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return members with a patch over them. A member that the patch sets to null is removed."""
    merged = {**values, **patch}
    return {name: value for name, value in merged.items() if value is not None or name not in patch}


def merge_model(model: DomainModel, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a model with those of a patch that are not null over them."""
    return {**model.model_dump(), **{name: value for name, value in patch.items() if value is not None}}
