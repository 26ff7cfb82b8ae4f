"""Define the pages of a site and its settings, as edit plans change them."""

from typing import Any

from pydantic import Field

from fermata.domain.base import DomainModel

HOME_SLUG = "/"
CHROME_TYPES = frozenset({"header", "footer", "siteheader", "sitefooter", "navbar", "navigation"})
"""Types of blocks that frame every page, in lower case. No plan adds, moves, removes or duplicates them."""


class PageBlock(DomainModel):
    """A section of a page: its id, the type that its editor knows, and its props."""

    id: str = Field(min_length=1)
    type: str = Field(min_length=1)
    props: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_chrome(self) -> bool:
        """Whether the block frames every page."""
        return self.type.lower() in CHROME_TYPES


class PageMeta(DomainModel):
    """What search engines and previews show of a page."""

    description: str | None = None
    og_image: str | None = None


class Page(DomainModel):
    """A page. `updated_at` is an ISO instant."""

    id: str = Field(min_length=1)
    slug: str = Field(pattern=r"^/\S*$", max_length=200)
    title: str = Field(min_length=1)
    updated_at: str = ""
    blocks: tuple[PageBlock, ...] = ()
    meta: PageMeta | None = None

    def find_block(self, block_id: str) -> PageBlock | None:
        """Return the block with an id, or None."""
        return next((block for block in self.blocks if block.id == block_id), None)

    def replace_block(self, block: PageBlock) -> "Page":
        """Return the page with another block in place of that with its id."""
        blocks = tuple(block if one.id == block.id else one for one in self.blocks)
        return self.model_copy(update={"blocks": blocks})


class SiteConfig(DomainModel):
    """The settings that all pages share."""

    name: str | None = None
    logo: str | None = None
    nav_labels: dict[str, str] | None = None
    nav_groups: list[dict[str, Any]] | None = None


class SiteDraft(DomainModel):
    """The pages of a site in their order, and its settings."""

    pages: tuple[Page, ...] = ()
    config: SiteConfig = SiteConfig()

    def find_page(self, slug: str) -> Page | None:
        """Return the page with a slug, or None."""
        return next((page for page in self.pages if page.slug == slug), None)

    @property
    def slugs(self) -> tuple[str, ...]:
        """The slugs of the pages, in their order."""
        return tuple(page.slug for page in self.pages)
